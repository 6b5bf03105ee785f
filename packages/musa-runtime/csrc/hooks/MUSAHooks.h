// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/detail/PrivateUse1HooksInterface.h>

namespace at::musa {

// torch's hooks for the accelerator: initialisation, generators, pinned memory and device properties.
struct MUSAHooks final : at::PrivateUse1HooksInterface {
  // Called once by Context::lazyInitDevice: checks that a device can be used, loads the generated operator library and
  // makes the op registry install its kernels. Raises with cause and fix; a later call retries.
  void init() const override;
  bool isBuilt() const override { return true; }
  bool isAvailable() const override;
  bool hasPrimaryContext(DeviceIndex device) const override;

  DeviceIndex deviceCount() const override;
  void setCurrentDevice(DeviceIndex device) const override;
  DeviceIndex getCurrentDevice() const override;
  DeviceIndex exchangeDevice(DeviceIndex device) const override;
  DeviceIndex maybeExchangeDevice(DeviceIndex device) const override;

  const Generator& getDefaultGenerator(DeviceIndex device) const override;
  Generator getNewGenerator(DeviceIndex device) const override;

  Device getDeviceFromPtr(void* data) const override;
  bool isPinnedPtr(const void* data) const override;
  Allocator* getPinnedMemoryAllocator() const override;
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t nbytes) const override;
};

} // namespace at::musa
