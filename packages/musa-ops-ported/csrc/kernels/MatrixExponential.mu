// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The exponential of a matrix: exp(A) = exp(A / 2^s)^(2^s). The norm of A / 2^s is at most 1/2 (2 in single precision), so
// that 17 terms of the series suffice: the next one is below 2e-20 (4e-10). Squarings amplify rounding errors.
#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/where.h>

#include <array>
#include <cstdint>

#include "engines/matrices.muh"
#include "kernels/MatrixExponential.h"

namespace musa_ops_ported {

at::Tensor linalg_matrix_exp(const at::Tensor& self) {
  TORCH_CHECK(self.dim() >= 2, "linalg.matrix_exp: The input tensor A must have at least 2 dimensions.");
  TORCH_CHECK(
      self.size(-1) == self.size(-2), "linalg.matrix_exp: A must be batches of square matrices, but they are ",
      self.size(-2), " by ", self.size(-1), " matrices");
  TORCH_CHECK(
      at::isFloatingType(self.scalar_type()) || at::isComplexType(self.scalar_type()), "linalg.matrix_exp: Expected a ",
      "floating point or complex tensor as input. Got ", self.scalar_type());
  if (self.numel() == 0) {
    return self.clone();
  }
  if (self.size(-1) == 1) {
    return self.exp();
  }
  const OwnPrecision guard;
  const at::ScalarType wide = at::toOpMathType(self.scalar_type());
  if (wide != self.scalar_type()) {
    return linalg_matrix_exp(self.to(wide)).to(self.scalar_type());
  }
  const at::Tensor norms = self.abs().sum(-2, /*keepdim=*/true).amax(-1, /*keepdim=*/true);
  // A norm that is not finite scales nothing: the result is not finite either.
  const at::Tensor halvings =
      norms.div(c10::toRealValueType(wide) == at::kDouble ? 0.5 : 2).log2().ceil().nan_to_num(0, 0, 0).clamp_min(0);
  const at::Tensor a = self.mul(halvings.neg().exp2());
  const at::Tensor a2 = a.matmul(a), a3 = a2.matmul(a), a4 = a2.matmul(a2);
  std::array<double, 17> inverse_factorials{1};
  for (size_t k = 1; k < inverse_factorials.size(); ++k) {
    inverse_factorials[k] = inverse_factorials[k - 1] / static_cast<double>(k);
  }
  // Four terms of the series from k on, without their common power of A.
  const auto four_terms = [&](size_t k) {
    at::Tensor sum = a.mul(inverse_factorials[k + 1]);
    sum.add_(a2, inverse_factorials[k + 2]).add_(a3, inverse_factorials[k + 3]);
    sum.diagonal(0, -2, -1).add_(inverse_factorials[k]);
    return sum;
  };
  at::Tensor result = four_terms(12).add_(a4, inverse_factorials[16]);
  for (size_t k = 12; k > 0; k -= 4) {
    result = four_terms(k - 4).add_(result.matmul(a4));
  }
  const auto most = halvings.max().item<double>();
  for (int64_t i = 0; static_cast<double>(i) < most; ++i) {
    result = at::where(halvings.gt(i), result.matmul(result), result);
  }
  return result;
}

} // namespace musa_ops_ported
