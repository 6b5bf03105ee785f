// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Attention by a device's own kernels: none here. attention_flash.cpp calls torch's kernel for the CPU.
#pragma once

#include <ATen/core/Tensor.h>

namespace musa_emulator::dnn {

template <class... Arguments>
bool device_flash(const Arguments&...) {
  return false;
}
template <class... Arguments>
bool device_flash_backward(const Arguments&...) {
  return false;
}

} // namespace musa_emulator::dnn
