// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// What kernels and extensions ask of the current device, by the names of at::cuda. Without handles of libraries.
#pragma once

#include <ATen/Context.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAFunctions.h>
#include <c10/musa/MUSAGuard.h>
#include <c10/musa/MUSAStream.h>
#include <c10/util/Logging.h>

namespace at::musa {

using c10::musa::getCurrentMUSAStream;

inline musaDeviceProp* getDeviceProperties(c10::DeviceIndex device) {
  return const_cast<musaDeviceProp*>(&c10::musa::device_properties(device)); // as torch.cuda's, which nobody writes to
}
inline musaDeviceProp* getCurrentDeviceProperties() {
  return getDeviceProperties(c10::musa::current_device());
}
inline int warp_size() {
  return getCurrentDeviceProperties()->warpSize;
}

} // namespace at::musa
