// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Properties and streams of the current device for kernels and extensions, named as in at::cuda. Has no library handles.
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
  return const_cast<musaDeviceProp*>(
      &c10::musa::device_properties(device)); // not const as in torch.cuda; never written to
}
inline musaDeviceProp* getCurrentDeviceProperties() { return getDeviceProperties(c10::musa::current_device()); }
inline int warp_size() { return getCurrentDeviceProperties()->warpSize; }

} // namespace at::musa
