// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/Device.h>
#include <c10/musa/MUSAFunctions.h>

#include <optional>

namespace c10::musa {

// Sets the device for a scope whose code does not change it: calls the SDK at the end only if it did at the beginning.
class MUSAKernelGuard {
 public:
  explicit MUSAKernelGuard(DeviceIndex device) : original_(ExchangeDevice(device)), device_(device) {}
  // Without a device, the current one is kept.
  explicit MUSAKernelGuard(std::optional<Device> device)
      : original_(device.has_value() ? ExchangeDevice(device->index()) : -1),
        device_(device.has_value() ? device->index() : -1) {}
  ~MUSAKernelGuard() {
    if (original_ != device_) {
      restore_device(original_);
    }
  }
  MUSAKernelGuard(const MUSAKernelGuard&) = delete;
  MUSAKernelGuard& operator=(const MUSAKernelGuard&) = delete;

 private:
  const DeviceIndex original_;
  const DeviceIndex device_;
};

} // namespace c10::musa
