// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Devices: their table, their properties, the calling thread's current one.
#pragma once

#include "engine/state.h"

namespace musa_emulator {

void create_devices(Engine& state);

MUSA_ENGINE int device_count();
// Null when out of range.
MUSA_ENGINE Device* find_device(int ordinal);
// The calling thread's device. Activates its context. Null only when there is no device.
MUSA_ENGINE Device* current_device();
MUSA_ENGINE musaError_t device_attribute(const Device& device, musaDeviceAttr attribute, int* value);
MUSA_ENGINE void lose_device(Device& device, musaError_t error);
MUSA_ENGINE musaError_t synchronize_device(Device& device);
// The same in every state of captures, for calls that wait without being a synchronization.
MUSA_ENGINE musaError_t wait_for_device(Device& device);
// Releases what the device holds and forgives a lost device.
MUSA_ENGINE musaError_t reset_device(Device& device);

inline constexpr int kLeastPriority = 0;
inline constexpr int kGreatestPriority = -5;
inline constexpr int kVersion = 40301;

} // namespace musa_emulator
