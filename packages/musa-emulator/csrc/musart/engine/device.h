// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Devices: their table, their properties, and the calling thread's current device.
#pragma once

#include "engine/state.h"

namespace musa_emulator {

void create_devices(Engine& state);
// Properties of a device, visible or not.
MUSA_ENGINE musaDeviceProp device_properties(const Config& config, int physical);

MUSA_ENGINE int device_count();
// Returns nullptr if `ordinal` is out of range.
MUSA_ENGINE Device* find_device(int ordinal);
// Returns the calling thread's device and activates its context. Returns nullptr only if there is no device.
MUSA_ENGINE Device* current_device();
MUSA_ENGINE musaError_t device_attribute(const Device& device, musaDeviceAttr attribute, int* value);
MUSA_ENGINE void lose_device(Device& device, musaError_t error);

inline constexpr int kLeastPriority = 0;
inline constexpr int kGreatestPriority = -5;
inline constexpr int kVersion = 40301;

} // namespace musa_emulator
