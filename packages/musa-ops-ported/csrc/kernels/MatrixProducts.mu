// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Products of matrices in every dtype, for those that the library of matrix products does not take: whole and complex
// numbers, double precision, operands without elements. A thread computes an element of the result.
#include <ATen/core/Tensor.h>
#include <c10/util/complex.h>

#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "kernels.h"

namespace musa_ops_ported {
namespace {

// A lazily conjugated or negated operand, as its memory is not.
at::Tensor resolved(const at::Tensor& tensor) {
  return tensor.resolve_conj().resolve_neg();
}

// out[b, i, j] = beta * added[b, i, j] + alpha * sum over k of first[b, i, k] * second[b, k, j]; with beta 0, `added` is not
// read. All are three-dimensional.
template <typename scalar_t>
void multiply(
    const at::Tensor& first, const at::Tensor& second, const at::Tensor& added, const at::Scalar& beta,
    const at::Scalar& alpha, const at::Tensor& out) {
  using op_t = at::opmath_type<scalar_t>;
  const scalar_t* const x = first.const_data_ptr<scalar_t>();
  const scalar_t* const y = second.const_data_ptr<scalar_t>();
  const scalar_t* const z = added.const_data_ptr<scalar_t>();
  scalar_t* const to = out.mutable_data_ptr<scalar_t>();
  const int64_t depth = first.size(2);
  const int64_t x_step = first.stride(2);
  const int64_t y_step = second.stride(1);
  const op_t factor = alpha.to<op_t>();
  const op_t of_added = beta.to<op_t>();
  const bool adds = of_added != op_t(0);
  for_each_offset(
      out.sizes(),
      [=] __device__(int64_t, const auto& at) {
        op_t sum(0);
        for (int64_t k = 0; k < depth; ++k) {
          sum += static_cast<op_t>(x[at[1] + k * x_step]) * static_cast<op_t>(y[at[2] + k * y_step]);
        }
        sum *= factor;
        if (adds) {
          sum += of_added * static_cast<op_t>(z[at[3]]);
        }
        to[at[0]] = static_cast<scalar_t>(sum);
      },
      out.strides(), at::IntArrayRef({first.stride(0), first.stride(1), 0}),
      at::IntArrayRef({second.stride(0), 0, second.stride(2)}), added.strides());
}

void multiply_batches(
    const at::Tensor& first, const at::Tensor& second, const at::Tensor& added, const at::Scalar& beta,
    const at::Scalar& alpha, const at::Tensor& out) {
  if (out.numel() == 0) {
    return;
  }
  const at::Tensor x = resolved(first), y = resolved(second);
  const at::Tensor z = resolved(added).expand_as(out);
  MUSA_DISPATCH(out.scalar_type(), "matrix product", (MUSA_NUMBERS), {
    multiply<scalar_t>(x, y, z, beta, alpha, out);
  });
}

} // namespace

void bmm(const at::Tensor& self, const at::Tensor& mat2, const at::Tensor& out) {
  multiply_batches(self, mat2, out, 0, 1, out);
}

void baddbmm(
    const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2, const at::Scalar& beta,
    const at::Scalar& alpha, const at::Tensor& out) {
  multiply_batches(batch1, batch2, self, beta, alpha, out);
}

void mm(const at::Tensor& self, const at::Tensor& mat2, const at::Tensor& out) {
  bmm(self.unsqueeze(0), mat2.unsqueeze(0), out.unsqueeze(0));
}

void addmm(
    const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2, const at::Scalar& beta,
    const at::Scalar& alpha, const at::Tensor& out) {
  multiply_batches(mat1.unsqueeze(0), mat2.unsqueeze(0), self, beta, alpha, out.unsqueeze(0));
}

void addmv(
    const at::Tensor& self, const at::Tensor& mat, const at::Tensor& vec, const at::Scalar& beta,
    const at::Scalar& alpha, const at::Tensor& out) {
  multiply_batches(
      mat.unsqueeze(0), vec.unsqueeze(0).unsqueeze(2), self.dim() == 0 ? self : self.unsqueeze(1), beta, alpha,
      out.unsqueeze(0).unsqueeze(2));
}

} // namespace musa_ops_ported
