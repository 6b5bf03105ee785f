// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <musa_runtime/op_pack.h>

// torch's CPU kernel of native_dropout draws from the CPU's default generator, which no argument can change. In this
// composition, bernoulli_ draws the mask from the musa generator.

namespace musa_runtime {
namespace {

// Returns (input * mask / (1 - p), mask); the mask is bool, true where a value is kept.
std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double p, std::optional<bool> train) {
  if (input.numel() == 0) {
    return {input, at::empty_like(input, input.options().dtype(at::kBool))};
  }
  if (train.has_value() && !*train) {
    return {input.clone(), at::ones_like(input, input.options().dtype(at::kBool))};
  }
  if (p == 1) {
    return {at::zeros_like(input), at::zeros_like(input, input.options().dtype(at::kBool))};
  }
  at::Tensor mask = at::empty_like(input, input.options().dtype(at::kBool));
  mask.bernoulli_(1 - p);
  at::Tensor output = input.mul(mask).mul_(1.0 / (1.0 - p));
  return {std::move(output), std::move(mask)};
}

MUSA_OP_PACK(runtime, pack) { pack.impl("aten::native_dropout", TORCH_FN(native_dropout)); }

} // namespace
} // namespace musa_runtime
