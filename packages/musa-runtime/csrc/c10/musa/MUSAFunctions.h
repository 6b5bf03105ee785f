// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/Device.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAMacros.h>
#include <c10/musa/MUSASyncDebugMode.h>

namespace c10::musa {

// Number of visible devices; 0 if there is none or the SDK fails (see device_count_error). Never throws and creates no
// context: torch calls it early, as during imports. The SDK is queried once per process.
C10_MUSA_API DeviceIndex device_count() noexcept;
// Warns if MUSA_VISIBLE_DEVICES changed after the devices had been counted: the SDK reads it once.
C10_MUSA_API void warn_if_visible_devices_changed();
// Whether this process was forked from one that had counted its devices. The SDK is initialised then, and does not survive
// the fork.
C10_MUSA_API bool counted_before_fork() noexcept;
// The SDK's error behind a device_count() of 0.
C10_MUSA_API musaError_t device_count_error() noexcept;
// The same, but raises for 0 devices, with the causes and the fix.
C10_MUSA_API DeviceIndex device_count_ensure_non_zero();
// Raises for an index that names no device.
C10_MUSA_API void check_device_index(DeviceIndex device);

C10_MUSA_API DeviceIndex current_device();
C10_MUSA_API void set_device(DeviceIndex device);
C10_MUSA_API void device_synchronize();

// The spellings that ported code uses.
C10_MUSA_API musaError_t GetDevice(DeviceIndex* device);
C10_MUSA_API musaError_t SetDevice(DeviceIndex device);
// In CUDA it creates no context; MUSA has no context to create.
inline musaError_t MaybeSetDevice(DeviceIndex device) { return SetDevice(device); }
// For destructors of guards: never throws, and retries once.
C10_MUSA_API void restore_device(DeviceIndex device) noexcept;
C10_MUSA_API DeviceIndex ExchangeDevice(DeviceIndex device);
// A negative index keeps the current device.
C10_MUSA_API DeviceIndex MaybeExchangeDevice(DeviceIndex device);

// Properties are read from the SDK once per device; the reference is valid until the process ends.
C10_MUSA_API const musaDeviceProp& device_properties(DeviceIndex device);

inline DeviceIndex resolve_device_index(DeviceIndex device) { return device < 0 ? current_device() : device; }

} // namespace c10::musa
