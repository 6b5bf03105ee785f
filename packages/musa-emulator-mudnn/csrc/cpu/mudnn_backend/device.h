// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Tasks compute on the host with torch's CPU functions. musa-cuda-mudnn compiles the same sources with another header
// of this name.
#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>

#include "engine/device.h"
#include "support/access.h"

namespace at::cpu {} // for sources that call none of its functions

namespace musa_emulator::dnn {

namespace ops = at::cpu; // torch's functions, called without the dispatcher

// Whether tasks access operands from the host.
inline constexpr bool kOnHost = true;
inline constexpr c10::DeviceType kDeviceType = c10::kCPU;
inline constexpr c10::DispatchKey kDispatchKey = c10::DispatchKey::CPU;
inline c10::Device current_device() { return c10::Device(kDeviceType); }

inline at::TensorOptions options_of(c10::ScalarType type) { return at::TensorOptions(type); }
inline at::Tensor new_tensor(c10::IntArrayRef sizes, c10::ScalarType type) {
  return at::detail::empty_cpu(sizes, type);
}

// Returns the elements of a contiguous operand in host memory.
inline const int32_t* on_host(const musa::dnn::Tensor& numbers, at::Tensor& /*copy*/) {
  return static_cast<const int32_t*>(musa::dnn::TensorAccess::address(numbers));
}

// Returns 10 * major + minor, or 0 if the device does not exist.
inline int arch_of(int index) {
  const Device* const device = find_device(index);
  return device != nullptr ? device->properties.major * 10 + device->properties.minor : 0;
}

} // namespace musa_emulator::dnn
