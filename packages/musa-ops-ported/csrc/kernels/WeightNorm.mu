// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// w = g * v / |v|, with one norm per slice along the first or the last dimension.
#include <ATen/core/Tensor.h>
#include <musa_runtime/argument_checks.h>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/rows.muh"
#include "kernels/WeightNorm.h"

namespace musa_ops_ported {
namespace {

// Element k of slice `row` is at row * row_step + k * step.
struct Slices {
  int64_t rows, size, row_step, step;

  Slices(const at::Tensor& v, int64_t dim) {
    TORCH_CHECK(dim == 0 || dim == v.dim() - 1, "fused kernels can only be applied for first or last dim");
    rows = v.size(dim);
    size = rows == 0 ? 0 : v.numel() / rows;
    row_step = dim == 0 ? size : 1;
    step = dim == 0 ? 1 : rows;
  }
};

template <typename T>
void forward(
    const Slices& slices, const at::Tensor& v, const at::Tensor& g, const at::Tensor& w, const at::Tensor& norms) {
  using Real = at::opmath_type<T>;
  const T* const in = v.const_data_ptr<T>();
  const T* const lengths = g.const_data_ptr<T>();
  T* const out = w.mutable_data_ptr<T>();
  Real* const norm = norms.mutable_data_ptr<Real>();
  each_row<Real>(slices.rows, slices.size, [=] __device__(int64_t row, int64_t first, int64_t step, auto all) {
    const int64_t start = row * slices.row_step;
    const Real length = std::sqrt(sum_over<Real>(first, slices.size, step, all, [&](int64_t k) {
      const Real x = static_cast<Real>(in[start + k * slices.step]);
      return x * x;
    }));
    const Real factor = static_cast<Real>(lengths[row]) / length;
    for (int64_t k = first; k < slices.size; k += step) {
      const int64_t at = start + k * slices.step;
      out[at] = static_cast<T>(static_cast<Real>(in[at]) * factor);
    }
    if (first == 0) {
      norm[row] = length;
    }
  });
}

// The component of the gradient along v goes to g, the rest to v.
template <typename T>
void backward(
    const Slices& slices, const at::Tensor& grad_w, const at::Tensor& v, const at::Tensor& g, const at::Tensor& norms,
    const at::Tensor& grad_v, const at::Tensor& grad_g) {
  using Real = at::opmath_type<T>;
  const T* const dw = grad_w.const_data_ptr<T>();
  const T* const in = v.const_data_ptr<T>();
  const T* const lengths = g.const_data_ptr<T>();
  const Real* const norm = norms.const_data_ptr<Real>();
  T* const dv = grad_v.mutable_data_ptr<T>();
  T* const dg = grad_g.mutable_data_ptr<T>();
  each_row<Real>(slices.rows, slices.size, [=] __device__(int64_t row, int64_t first, int64_t step, auto all) {
    const int64_t start = row * slices.row_step;
    const Real product = sum_over<Real>(first, slices.size, step, all, [&](int64_t k) {
      const int64_t at = start + k * slices.step;
      return static_cast<Real>(dw[at]) * static_cast<Real>(in[at]);
    });
    const Real inverse = Real(1) / norm[row];
    const Real factor = static_cast<Real>(lengths[row]) * inverse;
    const Real along = product * inverse * inverse;
    for (int64_t k = first; k < slices.size; k += step) {
      const int64_t at = start + k * slices.step;
      dv[at] = static_cast<T>(factor * (static_cast<Real>(dw[at]) - static_cast<Real>(in[at]) * along));
    }
    if (first == 0) {
      dg[row] = static_cast<T>(product * inverse);
    }
  });
}

} // namespace

std::tuple<at::Tensor, at::Tensor> _weight_norm_interface(const at::Tensor& v, const at::Tensor& g, int64_t dim) {
  const Slices slices(v, dim);
  musa_runtime::check_count("_weight_norm_interface", "g", g, slices.rows);
  const at::Tensor in = v.contiguous();
  const at::Tensor lengths = g.contiguous();
  const at::Tensor w = aten::empty_like(in, at::MemoryFormat::Contiguous);
  at::Tensor norms;
  MUSA_DISPATCH(v.scalar_type(), "weight_norm", (MUSA_FLOATING), {
    norms = aten::empty(g.sizes(), g.options().dtype(c10::CppTypeToScalarType<op_t>::value));
    forward<scalar_t>(slices, in, lengths, w, norms);
  });
  return {w, norms};
}

std::tuple<at::Tensor, at::Tensor> _weight_norm_interface_backward(
    const at::Tensor& grad_w, const at::Tensor& saved_v, const at::Tensor& saved_g, const at::Tensor& saved_norms,
    int64_t dim) {
  TORCH_CHECK(saved_v.is_contiguous(), "saved_v must be contiguous");
  TORCH_CHECK(saved_g.is_contiguous(), "saved_g must be contiguous");
  TORCH_CHECK(saved_norms.is_contiguous(), "saved_norms must be contiguous");
  const Slices slices(saved_v, dim);
  const char* const op = "_weight_norm_interface_backward";
  musa_runtime::check_shape(op, "grad_w", grad_w, saved_v.sizes());
  musa_runtime::check_count(op, "saved_g", saved_g, slices.rows);
  musa_runtime::check_count(op, "saved_norms", saved_norms, slices.rows);
  const at::Tensor dw = grad_w.contiguous();
  const at::Tensor grad_v = aten::empty_like(saved_v, at::MemoryFormat::Contiguous);
  const at::Tensor grad_g = aten::empty_like(saved_g, at::MemoryFormat::Contiguous);
  MUSA_DISPATCH(saved_v.scalar_type(), "weight_norm_backward", (MUSA_FLOATING), {
    backward<scalar_t>(slices, dw, saved_v, saved_g, saved_norms, grad_v, grad_g);
  });
  return {grad_v, grad_g};
}

} // namespace musa_ops_ported
