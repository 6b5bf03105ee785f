// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Shared by dense and packed attention: the limits of RunFlash, and the seeds of dropout.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <musa_runtime/mudnn.h>

#include <cmath>

#include "families.h"
#include "support/call.h"
#include "support/predicates.h"

namespace musa_ops_mudnn {

using Attention = dnn::ScaledDotProductAttention;

// Whether the device has flash attention for these head sizes.
bool has_flash(const at::Tensor& query, const at::Tensor& value);

// A scale of 0 selects muDNN's default.
inline bool serves_scale(std::optional<double> scale) {
  return !scale.has_value() || (std::isfinite(*scale) && *scale != 0);
}

struct AttentionSizes {
  int64_t batch, heads, longest_q, longest_k, value_size;
};
// Returns an operation with all settings except SetMaskMode and SetSeed.
Attention configured(
    const AttentionSizes& sizes, at::ScalarType dtype, double dropout_p, bool is_causal, std::optional<double> scale);

// Returns the tensor, or a copy if elements within a row are not adjacent or a dimension is broadcast.
at::Tensor with_rows(const at::Tensor& tensor);

// Seed and offset of the generator, as tensors that autograd saves. They are CPU tensors, except while a graph is
// captured: then they are on the device, and each replay writes new values.
struct Seeds {
  at::Tensor seed, offset;

  // For calls without dropout.
  Seeds();
  Seeds(at::Tensor seed, at::Tensor offset) : seed(std::move(seed)), offset(std::move(offset)) {}

  static Seeds drawn(const at::Tensor& like, int64_t count);
  void give_to(Attention& op) const;
};

void declare_packed_attention(OpPack& pack);

} // namespace musa_ops_mudnn
