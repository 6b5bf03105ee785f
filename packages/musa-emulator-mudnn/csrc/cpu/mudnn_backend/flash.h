// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Attention by a device's own kernels: none for the CPU. attention_flash.cpp calls torch's CPU kernel instead.
#pragma once

#include <mudnn_backend/lending.h>

namespace musa_emulator::dnn {

inline constexpr Declines device_flash, device_flash_backward, device_flash_packed, device_flash_packed_backward;
struct Attention {
  at::Tensor q, k, v, mask;
  bool causal;
  double scale;
};
struct Packed {
  at::Tensor q, k, v, offsets_q, offsets_k;
  int64_t longest_q, longest_k;
  bool causal;
  double scale;
};

} // namespace musa_emulator::dnn
