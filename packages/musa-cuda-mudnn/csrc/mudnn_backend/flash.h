// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Attention with torch's CUDA kernels.
#pragma once

#include <mudnn_backend/device.h>

namespace musa_emulator::dnn {

// Returns false, without doing anything, if the kernels do not support the operands.

// q, k, v and out are [N, H, L, E], lse is [N, H, L]. The H of q is a multiple of the H of k and v: adjacent heads of q
// share a head of k and v. The mask has four dimensions that broadcast to the scores, or is undefined: BOOL, true for
// keys that are seen, or numbers that are added to the scores.
struct Attention {
  at::Tensor q, k, v, mask;
  bool causal;
  double scale;
};
bool device_flash(const Attention& attention, const at::Tensor& out, const at::Tensor& lse);
bool device_flash_backward(
    const Attention& attention, const at::Tensor& grad_out, const at::Tensor& out, const at::Tensor& lse,
    const at::Tensor& grad_q, const at::Tensor& grad_k, const at::Tensor& grad_v);

// Packed sequences with equal H: q, k, v and out are [T, H, E], and lse is [B, H, longest q]. The INT32 offsets are read in stream
// order. With `causal`, the last query of a sequence attends to its last key.
struct Packed {
  at::Tensor q, k, v;
  at::Tensor offsets_q, offsets_k; // [B + 1]
  int64_t longest_q, longest_k;
  bool causal;
  double scale;
};
bool device_flash_packed(const Packed& packed, at::Tensor out, at::Tensor lse);
bool device_flash_packed_backward(
    const Packed& packed, const at::Tensor& grad_out, const at::Tensor& out, const at::Tensor& lse, at::Tensor grad_q,
    at::Tensor grad_k, at::Tensor grad_v);

} // namespace musa_emulator::dnn
