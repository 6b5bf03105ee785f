// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAGuard.h>
#include <c10/musa/MUSAStream.h>

#include "checks.h"
#include "operators.h"

namespace musa_ops_serving {
namespace {

// Checks what shrink and expand share, and describes it. `rows` and `matrices` have to live until the launch.
Lora check_lora(
    const char* op, const at::Tensor& input, const at::Tensor& weights, const at::Tensor& adapters, at::Tensor& rows,
    at::Tensor& matrices) {
  check_dims(op, {"input", input}, 2, "[tokens, size]");
  check_dims(op, {"weights", weights}, 3, "[adapters, outer size, inner size]");
  check_device(op, {"weights", weights}, input.device());
  TORCH_CHECK(
      weights.size(2) == input.size(1), op, ": expected weights of shape [adapters, outer size, ", input.size(1),
      "], the size of input, got ", weights.sizes());
  for (const int64_t size : {weights.size(0), weights.size(1), weights.size(2)}) {
    check_int32(op, "a size of the weights", size);
  }
  check_int32(op, "tokens * outer size / 16", input.size(0) * ((weights.size(1) + 15) / 16));
  Lora lora{};
  lora.adapters = check_integers(op, {"adapter_of_token", adapters}, input.size(0), input.device());
  rows = readable(input, false);
  matrices = weights.contiguous();
  lora.input = rows.const_data_ptr();
  lora.weights = matrices.const_data_ptr();
  lora.tokens = input.size(0);
  lora.input_stride = rows.stride(0);
  lora.adapter_count = static_cast<int>(weights.size(0));
  lora.outer = static_cast<int>(weights.size(1));
  lora.inner = static_cast<int>(weights.size(2));
  lora.aligned = is_aligned(rows) && is_aligned(matrices);
  return lora;
}

} // namespace

at::Tensor lora_shrink(
    const at::Tensor& input, const at::Tensor& weights, const at::Tensor& adapter_of_token, double scale) {
  const char* const op = "lora_shrink";
  const Dtype dtype = check_alike(op, {{"input", input}, {"weights", weights}});
  at::Tensor rows, matrices;
  const c10::musa::MUSAGuard guard(input.device());
  Lora lora = check_lora(op, input, weights, adapter_of_token, rows, matrices);
  const auto floats = input.options().dtype(at::kFloat);
  if (input.size(1) == 0) {
    return at::zeros({input.size(0), weights.size(1)}, floats);
  }
  at::Tensor out = at::empty({input.size(0), weights.size(1)}, floats);
  if (out.numel() > 0) {
    lora.out = out.mutable_data_ptr();
    lora.out_stride = out.stride(0);
    lora.scale = static_cast<float>(scale);
    lora_shrink_rows(lora, dtype, c10::musa::getCurrentMUSAStream().stream());
    C10_MUSA_KERNEL_LAUNCH_CHECK();
  }
  return out;
}

void lora_expand(
    const at::Tensor& input, const at::Tensor& weights, const at::Tensor& adapter_of_token, at::Tensor& output,
    int64_t offset) {
  const char* const op = "lora_expand";
  const Dtype dtype = check_alike(op, {{"weights", weights}, {"output", output}});
  TORCH_CHECK(
      input.scalar_type() == at::kFloat || input.scalar_type() == weights.scalar_type(), op,
      ": expected an input of dtype float32, as lora_shrink returns, or that of the weights, ", weights.scalar_type(),
      ", got ", input.scalar_type());
  check_dims(op, {"output", output}, 2, "[tokens, size]");
  at::Tensor rows, matrices;
  const c10::musa::MUSAGuard guard(input.device());
  Lora lora = check_lora(op, input, weights, adapter_of_token, rows, matrices);
  check_device(op, {"output", output}, input.device());
  TORCH_CHECK(
      output.size(0) == input.size(0) && offset >= 0 && offset + weights.size(1) <= output.size(1), op,
      ": expected an output of ", input.size(0), " rows, whose columns from ", offset, " on hold the ", weights.size(1),
      " of the weights, got ", output.sizes());
  TORCH_CHECK(
      output.size(1) <= 1 || output.stride(1) == 1, op,
      ": expected an output with contiguous rows, because it is changed in place, got strides ", output.strides());
  if (input.size(0) == 0 || weights.size(1) == 0 || input.size(1) == 0) {
    return;
  }
  lora.out = static_cast<char*>(output.mutable_data_ptr()) + offset * static_cast<int64_t>(output.element_size());
  lora.out_stride = output.stride(0);
  lora.float_input = input.scalar_type() == at::kFloat && weights.scalar_type() != at::kFloat;
  lora_expand_rows(lora, dtype, c10::musa::getCurrentMUSAStream().stream());
  C10_MUSA_KERNEL_LAUNCH_CHECK();
}

} // namespace musa_ops_serving
