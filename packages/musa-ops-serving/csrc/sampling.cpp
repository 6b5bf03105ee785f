// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAGuard.h>
#include <c10/musa/MUSAStream.h>

#include "checks.h"
#include "operators.h"

namespace musa_ops_serving {

void apply_penalties(
    at::Tensor& logits, const at::Tensor& prompt_mask, const at::Tensor& output_counts, const at::Tensor& presence,
    const at::Tensor& frequency, const at::Tensor& repetition) {
  const char* const op = "apply_penalties";
  const Dtype dtype = check_floating(op, {"logits", logits});
  const c10::Device device = logits.device();
  check_dims(op, {"logits", logits}, 2, "[sequences, vocabulary]");
  const int64_t rows = logits.size(0), size = logits.size(1);
  check_kind(op, {"prompt_mask", prompt_mask}, at::kBool, 2, device);
  check_sizes(op, {"prompt_mask", prompt_mask}, logits.sizes(), "as logits");
  check_device(op, {"output_counts", output_counts}, device);
  check_sizes(op, {"output_counts", output_counts}, logits.sizes(), "as logits");
  TORCH_CHECK(
      output_counts.scalar_type() == at::kInt || output_counts.scalar_type() == at::kLong, op,
      ": expected output_counts of dtype int32 or int64, got ", output_counts.scalar_type());
  Penalties penalties{};
  penalties.presence = check_floats(op, {"presence", presence}, rows, device, "sequence");
  penalties.frequency = check_floats(op, {"frequency", frequency}, rows, device, "sequence");
  penalties.repetition = check_floats(op, {"repetition", repetition}, rows, device, "sequence");
  TORCH_CHECK(
      size <= 1 || logits.stride(1) == 1, op,
      ": expected logits with contiguous rows, because they are changed in place, got strides ", logits.strides(),
      ".\nFix: logits.contiguous()");
  if (logits.numel() == 0) {
    return;
  }
  const c10::musa::MUSAGuard guard(device);
  const at::Tensor mask = readable(prompt_mask, false), counts = readable(output_counts, false);
  penalties.logits = logits.mutable_data_ptr();
  penalties.prompt_mask = mask.const_data_ptr<bool>();
  penalties.counts = {counts.const_data_ptr(), counts.scalar_type() == at::kLong};
  penalties.rows = rows;
  penalties.size = size;
  penalties.logits_stride = logits.stride(0);
  penalties.mask_stride = mask.stride(0);
  penalties.counts_stride = counts.stride(0);
  penalize(penalties, dtype, c10::musa::getCurrentMUSAStream().stream());
  C10_MUSA_KERNEL_LAUNCH_CHECK();
}

at::Tensor top_k_top_p(
    const at::Tensor& logits, const std::optional<at::Tensor>& k, const std::optional<at::Tensor>& p) {
  const char* const op = "top_k_top_p";
  const Dtype dtype = check_floating(op, {"logits", logits});
  check_dims(op, {"logits", logits}, 2, "[sequences, vocabulary]");
  Choice choice{};
  choice.rows = logits.size(0);
  choice.size = logits.size(1);
  // Sums of probabilities have 64 bits, of which a probability takes 40.
  TORCH_CHECK(choice.size <= 1 << 22, op, ": expected at most 2^22 logits for each sequence, got ", choice.size);
  if (k.has_value() && k->defined()) {
    choice.k = check_integers(op, {"k", *k}, choice.rows, logits.device());
  }
  choice.p = check_floats(op, "p", p, choice.rows, logits.device(), "sequence");
  at::Tensor out = at::empty(logits.sizes(), logits.options());
  if (out.numel() == 0) {
    return out;
  }
  check_int32(op, "the number of sequences", choice.rows);
  const c10::musa::MUSAGuard guard(logits.device());
  const at::Tensor rows = readable(logits, false);
  choice.logits = rows.const_data_ptr();
  choice.out = out.mutable_data_ptr();
  choice.row_stride = rows.stride(0);
  keep_most_probable(choice, dtype, c10::musa::getCurrentMUSAStream().stream());
  C10_MUSA_KERNEL_LAUNCH_CHECK();
  return out;
}

} // namespace musa_ops_serving
