// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Matrix products for cases that BLAS libraries do not support: integers, complex numbers, double precision, operands
// without elements. One thread computes one element of the result.
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/LinearAlgebra.h>
#include <ATen/native/TensorIterator.h>
#include <c10/util/complex.h>

#include <cmath>
#include <type_traits>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "engines/overlap.h"
#include "engines/pointwise.muh"
#include "kernels.h"

namespace musa_ops_ported {
namespace {

// Adds the products in sequence.
template <typename T>
struct SumOfProducts {
  T sum = T(0);

  __device__ void add(T x, T y, bool fused) {
    if constexpr (std::is_floating_point_v<T>) {
      sum = fused ? std::fma(x, y, sum) : sum + x * y;
    } else {
      sum += x * y;
    }
  }
  __device__ T value(bool /*fused*/) const { return sum; }
};
// If fused, each of the four products of real and imaginary parts has its own sum.
template <typename Real>
struct SumOfProducts<c10::complex<Real>> {
  using T = c10::complex<Real>;
  T sum = T(0);
  SumOfProducts<Real> both_real, both_imaginary, first_real, second_real;

  __device__ void add(T x, T y, bool fused) {
    if (!fused) {
      sum += x * y;
      return;
    }
    both_real.add(x.real(), y.real(), fused);
    both_imaginary.add(x.imag(), y.imag(), fused);
    first_real.add(x.real(), y.imag(), fused);
    second_real.add(x.imag(), y.real(), fused);
  }
  __device__ T value(bool fused) const {
    return fused ? T(both_real.sum - both_imaginary.sum, first_real.sum + second_real.sum) : sum;
  }
};

// Returns the operand with lazy conjugation and negation resolved. Copied if it shares memory with the output, which
// is written while operands are read.
at::Tensor readable(const at::Tensor& operand, const at::Tensor& out) {
  const at::Tensor values = operand.resolve_conj().resolve_neg();
  return at::get_overlap_status(out, values) == at::MemOverlapStatus::No ? values : values.clone();
}

// out[b, i, j] = beta * added[b, i, j] + alpha * sum over k of first[b, i, k] * second[b, k, j]. If beta is 0,
// `added` is not read. All tensors are three-dimensional.
template <typename scalar_t, typename Sum>
void multiply(
    const at::Tensor& first, const at::Tensor& second, const at::Tensor& added, const at::Scalar& beta,
    const at::Scalar& alpha, const at::Tensor& out, bool fused) {
  const scalar_t* const x = first.const_data_ptr<scalar_t>();
  const scalar_t* const y = second.const_data_ptr<scalar_t>();
  const scalar_t* const z = added.const_data_ptr<scalar_t>();
  scalar_t* const to = out.mutable_data_ptr<scalar_t>();
  const int64_t depth = first.size(2);
  const int64_t x_step = first.stride(2);
  const int64_t y_step = second.stride(1);
  const Sum factor = alpha.to<Sum>();
  const Sum of_added = beta.to<Sum>();
  const bool adds = of_added != Sum(0);
  for_each_offset(
      out.sizes(),
      [=] __device__(int64_t, const auto& at) {
        SumOfProducts<Sum> products;
        for (int64_t k = 0; k < depth; ++k) {
          products.add(static_cast<Sum>(x[at[1] + k * x_step]), static_cast<Sum>(y[at[2] + k * y_step]), fused);
        }
        Sum sum = factor * products.value(fused);
        if (adds) {
          sum += of_added * static_cast<Sum>(z[at[3]]);
        }
        to[at[0]] = static_cast<scalar_t>(sum);
      },
      out.strides(), at::IntArrayRef({first.stride(0), first.stride(1), 0}),
      at::IntArrayRef({second.stride(0), 0, second.stride(2)}), added.strides());
}

// The meta function has already checked the operands' shapes.
void multiply_batches(
    const at::Tensor& first, const at::Tensor& second, const at::Tensor& added, const at::Scalar& beta,
    const at::Scalar& alpha, const at::Tensor& out, bool batched = false) {
  if (out.numel() == 0) {
    return;
  }
  // The dispatcher resolves neither operands nor the output of matrix products.
  if (out.is_conj() || out.is_neg()) {
    const at::Tensor values = aten::empty(out.sizes(), out.options());
    multiply_batches(first, second, added, beta, alpha, values, batched);
    out.copy_(values);
    return;
  }
  const at::Tensor x = readable(first, out), y = readable(second, out);
  const at::Tensor z = added.resolve_conj().resolve_neg().expand_as(out);
  constexpr int64_t kOwnLoop = 400; // products; torch's CPU kernel multiplies smaller batches without a library
  // If terms cancel, the result consists of rounding errors, so rounding follows the function that torch calls on the CPU:
  // its own loop, which rounds each operation, or a library, whose operations are fused.
  const bool fused = !batched || x.size(1) * x.size(2) * y.size(2) >= kOwnLoop;
  MUSA_DISPATCH(out.scalar_type(), "matrix product", (MUSA_NUMBERS), {
    multiply<scalar_t, op_t>(x, y, z, beta, alpha, out, fused);
  });
}

void add_outer_product(at::TensorIterator& iter, const at::Scalar& beta, const at::Scalar& alpha) {
  if (iter.common_dtype() == at::kBool) {
    const bool adds = beta.to<bool>(), multiplies = alpha.to<bool>();
    pointwise(iter, [=] __host__ __device__(bool added, bool x, bool y) -> bool {
      return (adds && added) || (multiplies && x && y);
    });
    return;
  }
  MUSA_DISPATCH(iter.dtype(), "addr", (MUSA_NUMBERS), {
    const op_t factor = alpha.to<op_t>();
    const op_t of_added = beta.to<op_t>();
    const bool adds = of_added != op_t(0);
    pointwise(iter, [=] __host__ __device__(scalar_t added, scalar_t x, scalar_t y) -> scalar_t {
      const op_t outer = factor * static_cast<op_t>(x) * static_cast<op_t>(y);
      return static_cast<scalar_t>(adds ? of_added * static_cast<op_t>(added) + outer : outer);
    });
  });
}

} // namespace

void bmm(const at::Tensor& self, const at::Tensor& mat2, const at::Tensor& out) {
  at::assert_no_internal_overlap(out);
  multiply_batches(self, mat2, out, 0, 1, out, /*batched=*/true);
}

void baddbmm(
    const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2, const at::Scalar& beta,
    const at::Scalar& alpha, const at::Tensor& out) {
  check_overlap(out, self);
  multiply_batches(batch1, batch2, self, beta, alpha, out, /*batched=*/true);
}

void mm(const at::Tensor& self, const at::Tensor& mat2, const at::Tensor& out) {
  at::assert_no_internal_overlap(out);
  const at::Tensor batch = out.unsqueeze(0);
  multiply_batches(self.unsqueeze(0), mat2.unsqueeze(0), batch, 0, 1, batch);
}

void addmm(
    const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2, const at::Scalar& beta,
    const at::Scalar& alpha, const at::Tensor& out) {
  check_overlap(out, self);
  multiply_batches(mat1.unsqueeze(0), mat2.unsqueeze(0), self, beta, alpha, out.unsqueeze(0));
}

void addmv(
    const at::Tensor& self, const at::Tensor& mat, const at::Tensor& vec, const at::Scalar& beta,
    const at::Scalar& alpha, const at::Tensor& out) {
  check_overlap(out, self);
  multiply_batches(
      mat.unsqueeze(0), vec.unsqueeze(0).unsqueeze(2), self.dim() == 0 ? self : self.unsqueeze(1), beta, alpha,
      out.unsqueeze(0).unsqueeze(2));
}

} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(addr_stub, &musa_ops_ported::add_outer_product)
} // namespace at::native
