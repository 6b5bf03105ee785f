// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Histograms: counts use integer atomics, so results are reproducible.
#include <ATen/core/Tensor.h>
#include <ATen/musa/Atomic.muh>
#include <ATen/ops/aminmax.h>

#include <algorithm>
#include <cmath>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "kernels/SummaryOps.h"

namespace musa_ops_ported {

namespace {

template <typename W, typename F>
at::Tensor count_with(const at::Tensor& self, const at::Tensor& out, const F& weight) {
  W* const sums = out.mutable_data_ptr<W>();
  const int64_t stride = self.stride(0);
  MUSA_DISPATCH(self.scalar_type(), "bincount", (MUSA_INTEGRAL), {
    const scalar_t* const in = self.const_data_ptr<scalar_t>();
    for_each(self.numel(), [=] __device__(int64_t i) { gpuAtomicAddNoReturn(sums + in[i * stride], weight(i)); });
  });
  return out;
}

} // namespace

at::Tensor bincount(const at::Tensor& self, const std::optional<at::Tensor>& given_weights, int64_t minlength) {
  const at::Tensor weights = given_weights.value_or(at::Tensor());
  TORCH_CHECK(minlength >= 0, "minlength should be >= 0");
  const auto longs = self.options().dtype(at::kLong);
  if (self.dim() == 1 && self.numel() == 0) {
    return aten::zeros({minlength}, longs);
  }
  TORCH_CHECK(
      self.dim() == 1 && self.min().item<int64_t>() >= 0, "bincount only supports 1-d non-negative integral inputs.");
  TORCH_CHECK(
      !weights.defined() || (weights.dim() == 1 && weights.size(0) == self.size(0)),
      "weights should be 1-d and have the same length as input");
  const int64_t bins = std::max(self.max().item<int64_t>() + 1, minlength);
  if (!weights.defined()) {
    return count_with<int64_t>(self, aten::zeros({bins}, longs), [] __device__(int64_t) -> int64_t { return 1; });
  }
  const bool single = weights.scalar_type() == at::kFloat;
  const at::Tensor wide = single ? weights : weights.to(at::kDouble);
  const at::Tensor out = aten::zeros({bins}, wide.options());
  const int64_t step = wide.stride(0);
  if (single) {
    const float* const from = wide.const_data_ptr<float>();
    return count_with<float>(self, out, [=] __device__(int64_t i) -> float { return from[i * step]; });
  }
  const double* const from = wide.const_data_ptr<double>();
  return count_with<double>(self, out, [=] __device__(int64_t i) -> double { return from[i * step]; });
}

namespace {

template <typename T>
void count_in_range(const at::Tensor& self, T low, T high, const at::Tensor& counts) {
  const T* const in = self.const_data_ptr<T>();
  int64_t* const out = counts.mutable_data_ptr<int64_t>();
  const int64_t bins = counts.numel();
  using Wide = std::conditional_t<std::is_integral_v<T>, int64_t, at::opmath_type<T>>;
  const Wide first = static_cast<Wide>(low);
  const Wide last = static_cast<Wide>(high);
  for_each_offset(
      self.sizes(),
      [=] __device__(int64_t, const auto& at) {
        const Wide x = static_cast<Wide>(in[at[0]]);
        if (x >= first && x <= last) {
          const auto bin = static_cast<int64_t>((x - first) * static_cast<Wide>(bins) / (last - first));
          gpuAtomicAddNoReturn(out + (bin < bins ? bin : bins - 1), int64_t{1});
        }
      },
      self.strides());
}

template <typename T>
void count_values(const at::Tensor& self, const at::Scalar& min, const at::Scalar& max, const at::Tensor& counts) {
  T low = min.to<T>();
  T high = max.to<T>();
  if (low == high && self.numel() > 0) {
    const auto [smallest, largest] = at::aminmax(self);
    low = smallest.template item<T>();
    high = largest.template item<T>();
  }
  if (low == high) {
    low = low - T(1);
    high = high + T(1);
  }
  TORCH_CHECK(
      std::isfinite(static_cast<double>(low)) && std::isfinite(static_cast<double>(high)), "torch.histc: range of [",
      low, ", ", high, "] is not finite");
  TORCH_CHECK(low < high, "torch.histc: max must be larger than min");
  count_in_range<T>(self, low, high, counts);
}

} // namespace

at::Tensor histc(const at::Tensor& self, int64_t bins, const at::Scalar& min, const at::Scalar& max) {
  TORCH_CHECK(bins > 0, "torch.histc: bins must be > 0, but got ", bins);
  const at::Tensor counts = aten::zeros({bins}, self.options().dtype(at::kLong));
  MUSA_DISPATCH(self.scalar_type(), "histc", (MUSA_REAL), { count_values<scalar_t>(self, min, max, counts); });
  return counts.to(self.scalar_type());
}
at::Tensor& histc_out(
    const at::Tensor& self, int64_t bins, const at::Scalar& min, const at::Scalar& max, at::Tensor& out) {
  TORCH_CHECK(
      self.scalar_type() == out.scalar_type(),
      "torch.histc: input tensor and out should have the same dtype, but got input ", self.scalar_type(), " and out ",
      out.scalar_type());
  const at::Tensor result = musa_ops_ported::histc(self, bins, min, max);
  aten::resize_output(out, result.sizes());
  return out.copy_(result);
}

} // namespace musa_ops_ported
