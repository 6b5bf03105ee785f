// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/where.h>
#include <musa_runtime/op_pack.h>

#include <cmath>

// Functions of matrices, composed of products.

namespace musa_ops_math {
namespace {

using at::Tensor;

// The power series up to degree 19 in blocks of four powers (Paterson and Stockmeyer): seven products. For a norm of at most 1 the
// remainder is below 1 / 20!, which float64 does not resolve.
Tensor series(const Tensor& a, const Tensor& one) {
  constexpr int kBlock = 4, kBlocks = 5;
  const Tensor square = a.matmul(a), step = square.matmul(square);
  const Tensor powers[] = {one, a, square, square.matmul(a)};
  Tensor sum;
  for (int block = kBlocks - 1; block >= 0; --block) {
    Tensor terms = one.mul(1 / std::tgamma(kBlock * block + 1.0)).expand_as(a).clone();
    for (int i = 1; i < kBlock; ++i) {
      terms.add_(powers[i], 1 / std::tgamma(kBlock * block + i + 1.0));
    }
    sum = sum.defined() ? sum.matmul(step).add_(terms) : terms;
  }
  return sum;
}

// Scaling and squaring: exp(a) = exp(a / 2^s)^(2^s), with another s for each matrix of a batch.
Tensor matrix_exp(const Tensor& self) {
  TORCH_CHECK(
      self.dim() >= 2 && self.size(-1) == self.size(-2),
      "linalg.matrix_exp: A must be batches of square matrices, but they are ", self.size(-2), " by ", self.size(-1),
      " matrices");
  if (self.scalar_type() == at::kHalf || self.scalar_type() == at::kBFloat16) {
    return matrix_exp(self.to(at::kFloat)).to(self.scalar_type());
  }
  if (self.numel() == 0) {
    return at::empty_like(self, at::MemoryFormat::Contiguous);
  }
  const Tensor one = at::eye(self.size(-1), self.options());
  const Tensor norms = self.abs().sum(-2).amax(-1);
  // Infinite norms are halved as if they were 1; their results are not numbers.
  const Tensor halvings = norms.log2().ceil().nan_to_num(0, 0, 0).clamp_min(0);
  const auto most = static_cast<int64_t>(halvings.max().item<double>());
  const Tensor of_matrix = halvings.unsqueeze(-1).unsqueeze(-1);
  Tensor result = series(self.mul(of_matrix.neg().exp2()), one);
  for (int64_t squared = 0; squared < most; ++squared) {
    result = at::where(of_matrix.gt(squared), result.matmul(result), result);
  }
  return result;
}

bool matrix_exp_served(const Tensor& self) {
  const at::ScalarType dtype = self.scalar_type();
  return (at::isFloatingType(dtype) || dtype == at::kComplexFloat || dtype == at::kComplexDouble) && self.dim() >= 2;
}

MUSA_OP_PACK(math, pack) { pack.impl("aten::linalg_matrix_exp", TORCH_FN(matrix_exp), TORCH_FN(matrix_exp_served)); }

} // namespace
} // namespace musa_ops_math
