// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Shared by the dense and the packed form of attention: the limits of RunFlash, and dropout's seeds.
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

// Whether the card has flash attention for heads of these sizes.
bool has_flash(const at::Tensor& query, const at::Tensor& value);

// A scale of 0 selects muDNN's default.
inline bool serves_scale(std::optional<double> scale) {
  return !scale.has_value() || (std::isfinite(*scale) && *scale != 0);
}

struct AttentionSizes {
  int64_t batch, heads, longest_q, longest_k, value_size;
};
// Sets everything but SetMaskMode and SetSeed.
Attention configured(
    const AttentionSizes& sizes, at::ScalarType dtype, double dropout_p, bool is_causal, std::optional<double> scale);

// The tensor, or a copy of it if rows have gaps between their elements or a dimension is broadcast.
at::Tensor with_rows(const at::Tensor& tensor);

// Positions in the generator's sequence, as tensors that autograd keeps. They are CPU tensors, except while a graph is
// captured: then they are on the device, and each replay has its own.
struct Seeds {
  at::Tensor seed, offset;

  // For no dropout.
  Seeds();
  Seeds(at::Tensor seed, at::Tensor offset) : seed(std::move(seed)), offset(std::move(offset)) {}

  static Seeds drawn(const at::Tensor& like, int64_t count);
  void give_to(Attention& op) const;
};

void declare_packed_attention(OpPack& pack);

} // namespace musa_ops_mudnn
