// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Dot products of vectors: each thread sums some of the products, and torch's sum adds the partial sums.
#include <ATen/core/Tensor.h>
#include <c10/util/complex.h>

#include <algorithm>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "kernels/Dot.h"

namespace musa_ops_ported {
namespace {

void check_vectors(const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(
      self.dim() == 1 && other.dim() == 1, "1D tensors expected, but got ", self.dim(), "D and ", other.dim(),
      "D tensors");
  TORCH_CHECK(
      self.scalar_type() == other.scalar_type(), "dot : expected both vectors to have same dtype, but found ",
      self.scalar_type(), " and ", other.scalar_type());
  TORCH_CHECK(
      self.numel() == other.numel(), "inconsistent tensor size, expected tensor [", self.numel(), "] and src [",
      other.numel(), "] to have the same number of elements, but got ", self.numel(), " and ", other.numel(),
      " elements respectively");
  TORCH_CHECK(
      self.device() == other.device(), "Expected all tensors to be on the same device. Found: ", self.device(), ", ",
      other.device());
}

template <typename T>
void sum_products(const at::Tensor& self, const at::Tensor& other, bool conjugate, const at::Tensor& sums) {
  using Sum = at::opmath_type<T>;
  const T* const x = self.const_data_ptr<T>();
  const T* const y = other.const_data_ptr<T>();
  const int64_t x_stride = self.stride(0);
  const int64_t y_stride = other.stride(0);
  const int64_t count = self.numel();
  const int64_t threads = sums.numel();
  Sum* const to = sums.mutable_data_ptr<Sum>();
  for_each(threads, [=] __device__(int64_t j) {
    Sum sum(0);
    const bool conjugated = conjugate;
    for (int64_t i = j; i < count; i += threads) {
      Sum left = x[i * x_stride];
      if constexpr (c10::is_complex<Sum>::value) {
        left = conjugated ? std::conj(left) : left;
      }
      sum += left * static_cast<Sum>(y[i * y_stride]);
    }
    to[j] = sum;
  });
}

at::Tensor product(const at::Tensor& self, const at::Tensor& other, bool conjugate) {
  check_vectors(self, other);
  if (self.numel() == 0) {
    return aten::zeros({}, self.options());
  }
  const at::Tensor left = self.is_neg() ? self.resolve_neg() : self;
  const at::Tensor right = other.is_neg() ? other.resolve_neg() : other;
  const int64_t threads = std::clamp<int64_t>(self.numel() / 64, 1, 1 << 14);
  const at::Tensor sums = aten::empty({threads}, self.options().dtype(at::toOpMathType(self.scalar_type())));
  MUSA_DISPATCH(self.scalar_type(), "dot", (MUSA_REAL, AT_EXPAND(AT_COMPLEX_TYPES)), {
    sum_products<scalar_t>(left, right, conjugate, sums);
  });
  return (threads == 1 ? sums.squeeze(0) : sums.sum()).to(self.scalar_type());
}

} // namespace

// The dispatcher does not resolve lazy conjugation for dot, so it is rewritten in terms of vdot here.
at::Tensor dot(const at::Tensor& self, const at::Tensor& tensor) {
  if (self.is_complex() && self.is_conj()) {
    return tensor.is_conj() ? musa_ops_ported::dot(self.conj(), tensor.conj()).conj()
                            : musa_ops_ported::vdot(self.conj(), tensor);
  }
  return self.is_complex() && tensor.is_conj() ? musa_ops_ported::vdot(tensor.conj(), self)
                                               : product(self, tensor, /*conjugate=*/false);
}

at::Tensor vdot(const at::Tensor& self, const at::Tensor& other) {
  if (!self.is_complex()) {
    return dot(self, other);
  }
  if (self.is_conj()) {
    return other.is_conj() ? vdot(other.conj(), self.conj()) : dot(self.conj(), other);
  }
  return other.is_conj() ? dot(self, other.conj()).conj() : product(self, other, /*conjugate=*/true);
}

} // namespace musa_ops_ported
