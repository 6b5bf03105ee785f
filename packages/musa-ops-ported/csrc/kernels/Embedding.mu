// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/TensorUtils.h>
#include <ATen/core/Tensor.h>
#include <musa_runtime/argument_checks.h>

#include <limits>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/rows.muh"
#include "kernels/Embedding.h"
#include "segments.muh"

namespace musa_ops_ported {
namespace {

// Each row of the weight gathers the gradients of all positions that refer to it.
template <typename T>
void gather_gradients(
    const Segments& segments, const at::Tensor& grad, int64_t width, int64_t padding, bool by_frequency,
    const at::Tensor& out) {
  using Real = at::opmath_type<T>;
  const int64_t* const order = segments.order.const_data_ptr<int64_t>();
  const int64_t* const starts = segments.starts.const_data_ptr<int64_t>();
  const T* const g = grad.const_data_ptr<T>();
  T* const to = out.mutable_data_ptr<T>();
  for_each(out.numel(), [=] __device__(int64_t i) {
    const int64_t row = i / width, column = i % width;
    const int64_t begin = starts[row], end = starts[row + 1];
    Real sum = 0;
    if (row != padding && begin < end) {
      for (int64_t k = begin; k < end; ++k) {
        sum += static_cast<Real>(g[order[k] * width + column]);
      }
      sum = by_frequency ? sum / static_cast<Real>(end - begin) : sum;
    }
    to[i] = static_cast<T>(sum);
  });
}

// The norm of order p: combine part() with operator(), then apply finish().
template <typename Real>
struct Norm {
  Real p;

  __device__ Real part(Real x) const {
    x = std::abs(x);
    return p == Real(1) || is_largest() ? x : p == Real(2) ? x * x : std::pow(x, p);
  }
  __device__ Real operator()(Real a, Real b) const { return !is_largest() ? a + b : a > b ? a : b; }
  __device__ Real finish(Real sum) const {
    return p == Real(1) || is_largest() ? sum : p == Real(2) ? std::sqrt(sum) : std::pow(sum, Real(1) / p);
  }
  __device__ bool is_largest() const { return p == std::numeric_limits<Real>::infinity(); }
};

// Scales each referenced row once.
template <typename T>
void shorten_rows(const at::Tensor& self, const at::Tensor& sorted, double max_norm, double norm_type) {
  using Real = at::opmath_type<T>;
  const int64_t rows = self.size(0), width = self.size(1), row_step = self.stride(0), step_of_column = self.stride(1);
  const int64_t* const named = sorted.const_data_ptr<int64_t>();
  T* const data = self.mutable_data_ptr<T>();
  const Norm<Real> norm{static_cast<Real>(norm_type)};
  const Real longest = static_cast<Real>(max_norm);
  each_row<Real>(sorted.numel(), width, [=] __device__(int64_t i, int64_t first, int64_t step, auto all) {
    if (i > 0 && named[i] == named[i - 1]) {
      return;
    }
    CUDA_KERNEL_ASSERT(named[i] >= 0 && named[i] < rows && "index out of range of the embedding");
    T* const row = data + named[i] * row_step;
    Real sum = 0;
    for (int64_t k = first; k < width; k += step) {
      sum = norm(sum, norm.part(static_cast<Real>(row[k * step_of_column])));
    }
    // Both are rounded to the weight's dtype, as in torch.
    const Real length = static_cast<T>(norm.finish(all(sum, norm)));
    if (length > longest) {
      const Real factor = static_cast<T>(longest / (length + Real(1e-7)));
      for (int64_t k = first; k < width; k += step) {
        row[k * step_of_column] = static_cast<T>(static_cast<Real>(row[k * step_of_column]) * factor);
      }
    }
  });
}

} // namespace

at::Tensor embedding_dense_backward(
    const at::Tensor& grad_output, const at::Tensor& indices, int64_t num_weights, int64_t padding_idx,
    bool scale_grad_by_freq) {
  const at::TensorArg indices_arg(indices, "indices", 2);
  at::checkScalarTypes("embedding_backward", indices_arg, {at::kLong, at::kInt});
  const int64_t width = grad_output.size(-1);
  musa_runtime::check_count("embedding_dense_backward", "grad_output", grad_output, indices.numel() * width);
  const at::Tensor grad = grad_output.contiguous();
  const at::Tensor out = aten::empty({num_weights, width}, grad_output.options());
  if (out.numel() == 0) {
    return out;
  }
  const Segments segments(indices, num_weights);
  MUSA_DISPATCH(grad.scalar_type(), "embedding_dense_backward", (MUSA_FLOATING), {
    gather_gradients<scalar_t>(segments, grad, width, padding_idx, scale_grad_by_freq, out);
  });
  return out;
}

at::Tensor& embedding_renorm_(at::Tensor& self, const at::Tensor& indices, double max_norm, double norm_type) {
  const at::TensorArg self_arg(self, "self", 1), indices_arg(indices, "indices", 2);
  at::checkDim("embedding_renorm_", self_arg, 2);
  at::checkScalarTypes("embedding_renorm_", indices_arg, {at::kLong, at::kInt});
  if (indices.numel() == 0 || self.numel() == 0) {
    return self;
  }
  const at::Tensor sorted =
      std::get<0>(aten::sort(indices.reshape({-1}).to(at::kLong), /*stable=*/false, /*dim=*/-1, /*descending=*/false));
  MUSA_DISPATCH(self.scalar_type(), "embedding_renorm_", (MUSA_FLOATING), {
    shorten_rows<scalar_t>(self, sorted, max_norm, norm_type);
  });
  return self;
}

} // namespace musa_ops_ported
