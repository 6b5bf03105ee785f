// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Attention by a device's own kernels: none here. attention_flash.cpp calls torch's kernel for the CPU.
#pragma once

#include <mudnn_backend/lending.h>

namespace musa_emulator::dnn {

inline constexpr Declines device_flash, device_flash_backward;

} // namespace musa_emulator::dnn
