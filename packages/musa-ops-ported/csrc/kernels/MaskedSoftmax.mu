// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Softmax over the unmasked elements; the result is 0 where the mask is true.
#include <ATen/core/Tensor.h>

#include <limits>
#include <c10/util/Load.h>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/lines.h"
#include "engines/rows.muh"
#include "kernels/MaskedSoftmax.h"

namespace musa_ops_ported {
namespace {

// The mask types of _masked_softmax.
enum MaskType : int64_t { kSquare = 0, kPadding = 1, kFull = 2 };

at::Tensor expand_mask(const at::Tensor& self, const at::Tensor& mask, std::optional<int64_t> type) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "Mask should be a boolean tensor");
  TORCH_CHECK(type.has_value(), "Mask Type should be defined");
  TORCH_CHECK(
      *type >= kSquare && *type <= kFull,
      "Mask Type should be 0 (src_mask), 1 (src_key_padding_mask), or 2 (default_mask)");
  if (*type == kFull) {
    TORCH_CHECK(
        mask.sizes() == self.sizes(), "Mask shape should match input. mask: ", mask.sizes(), " input: ", self.sizes());
    return mask;
  }
  TORCH_CHECK(self.dim() == 4, "a mask of type ", *type, " is for an input of 4 dimensions, got ", self.dim());
  TORCH_CHECK(mask.dim() == 2, "a mask of type ", *type, " has 2 dimensions, got ", mask.dim());
  const int64_t batch = self.size(0), length = self.size(3);
  if (*type == kPadding) {
    TORCH_CHECK(
        mask.size(0) == batch && mask.size(1) == length, "For mask_type == 1 mask shape should be (B, L), got ",
        mask.sizes());
    return mask.view({batch, 1, 1, length}).expand(self.sizes());
  }
  TORCH_CHECK(
      mask.size(0) == self.size(2) && mask.size(1) == length, "For mask_type == 0 mask shape should be (L, L), got ",
      mask.sizes());
  return mask.view({1, 1, self.size(2), length}).expand(self.sizes());
}

// A line that is masked entirely becomes NaN.
template <typename T>
void forward(const at::Tensor& self, const at::Tensor& mask, int64_t dim, const at::Tensor& out) {
  using Real = at::opmath_type<T>;
  const Lines lines(self, dim);
  const T* const in = self.const_data_ptr<T>();
  const bool* const hidden = mask.const_data_ptr<bool>();
  T* const to = out.mutable_data_ptr<T>();
  each_row<Real>(lines.count, lines.size, [=] __device__(int64_t line, int64_t first, int64_t step, auto all) {
    const int64_t start = lines.start(line);
    Real largest = -std::numeric_limits<Real>::infinity();
    for (int64_t k = first; k < lines.size; k += step) {
      const int64_t at = start + k * lines.stride;
      const Real x = static_cast<Real>(in[at]);
      largest = !c10::load(hidden + at) && (x > largest || x != x) ? x : largest;
    }
    largest = all(largest, [](Real a, Real b) { return b > a || b != b ? b : a; });
    Real sum = 0;
    for (int64_t k = first; k < lines.size; k += step) {
      const int64_t at = start + k * lines.stride;
      sum += c10::load(hidden + at) ? Real(0) : std::exp(static_cast<Real>(in[at]) - largest);
    }
    sum = all(sum, Plus());
    for (int64_t k = first; k < lines.size; k += step) {
      const int64_t at = start + k * lines.stride;
      to[at] = static_cast<T>((c10::load(hidden + at) ? Real(0) : std::exp(static_cast<Real>(in[at]) - largest)) / sum);
    }
  });
}

template <typename T>
void backward(
    const at::Tensor& gradient, const at::Tensor& output, const at::Tensor& mask, int64_t dim, const at::Tensor& out) {
  using Real = at::opmath_type<T>;
  const Lines lines(output, dim);
  const T* const g = gradient.const_data_ptr<T>();
  const T* const y = output.const_data_ptr<T>();
  const bool* const hidden = mask.const_data_ptr<bool>();
  T* const to = out.mutable_data_ptr<T>();
  each_row<Real>(lines.count, lines.size, [=] __device__(int64_t line, int64_t first, int64_t step, auto all) {
    const int64_t start = lines.start(line);
    Real sum = 0;
    for (int64_t k = first; k < lines.size; k += step) {
      const int64_t at = start + k * lines.stride;
      sum += c10::load(hidden + at) ? Real(0) : static_cast<Real>(g[at]) * static_cast<Real>(y[at]);
    }
    sum = all(sum, Plus());
    for (int64_t k = first; k < lines.size; k += step) {
      const int64_t at = start + k * lines.stride;
      to[at] = static_cast<T>(
          c10::load(hidden + at) ? Real(0) : (static_cast<Real>(g[at]) - sum) * static_cast<Real>(y[at]));
    }
  });
}

} // namespace

at::Tensor _masked_softmax(
    const at::Tensor& self, const at::Tensor& mask, std::optional<int64_t> dim, std::optional<int64_t> mask_type) {
  const at::Tensor in = self.contiguous();
  const at::Tensor hidden = expand_mask(self, mask, mask_type).contiguous();
  const at::Tensor out = aten::empty_like(in, at::MemoryFormat::Contiguous);
  if (in.numel() > 0) {
    MUSA_DISPATCH(in.scalar_type(), "masked_softmax", (MUSA_FLOATING), {
      forward<scalar_t>(in, hidden, dim.value_or(self.dim() - 1), out);
    });
  }
  return out;
}

at::Tensor _masked_softmax_backward(
    const at::Tensor& grad_output, const at::Tensor& output, const at::Tensor& mask, std::optional<int64_t> dim) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "Mask should be a boolean tensor");
  TORCH_CHECK(
      grad_output.sizes() == mask.sizes() && output.sizes() == mask.sizes(),
      "gradient, output and mask should have one shape, got ", grad_output.sizes(), ", ", output.sizes(), " and ",
      mask.sizes());
  const at::Tensor g = grad_output.contiguous();
  const at::Tensor y = output.contiguous();
  const at::Tensor hidden = mask.contiguous();
  const at::Tensor out = aten::empty_like(g, at::MemoryFormat::Contiguous);
  if (g.numel() > 0) {
    MUSA_DISPATCH(g.scalar_type(), "masked_softmax_backward", (MUSA_FLOATING), {
      backward<scalar_t>(g, y, hidden, dim.value_or(output.dim() - 1), out);
    });
  }
  return out;
}

} // namespace musa_ops_ported
