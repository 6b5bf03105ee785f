// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors

// Replaces libmusa_runtime.so if no MUSA SDK can be loaded. The device's name is registered with torch anyway, so torch
// queries it: every query returns "none", and operations that need the device raise with the reason.

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <string>

namespace {

std::string& reason() {
  static std::string& text = *new std::string("the MUSA SDK could not be loaded");
  return text;
}

[[noreturn]] void raise() {
  TORCH_CHECK(false, "The musa device is not available: ", reason(), "\nFix: python -m torch_musa doctor");
}

struct UnavailableHooks final : at::PrivateUse1HooksInterface {
  void init() const override { raise(); }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return false; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return false; }
  c10::DeviceIndex deviceCount() const override { return 0; }
  c10::DeviceIndex getCurrentDevice() const override { raise(); }
  void setCurrentDevice(c10::DeviceIndex) const override { raise(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { raise(); }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return -1; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override { raise(); }
  at::Generator getNewGenerator(c10::DeviceIndex) const override { raise(); }
  at::Device getDeviceFromPtr(void*) const override { raise(); }
  bool isPinnedPtr(const void*) const override { return false; }
  at::Allocator* getPinnedMemoryAllocator() const override { raise(); }
  void resizePrivateUse1Bytes(const c10::Storage&, size_t) const override { raise(); }
};

const bool registered = (at::RegisterPrivateUse1HooksInterface(new UnavailableHooks()), true);

struct UnavailableGuard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::DeviceType::PrivateUse1; }
  c10::Device exchangeDevice(c10::Device) const override { raise(); }
  c10::Device getDevice() const override { raise(); }
  void setDevice(c10::Device) const override { raise(); }
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override { raise(); }
  c10::Stream exchangeStream(c10::Stream) const override { raise(); }
  // Called by the autograd engine even for CPU-only programs.
  c10::DeviceIndex deviceCount() const noexcept override { return 0; }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, UnavailableGuard);

} // namespace

extern "C" __attribute__((visibility("default"))) void musa_runtime_set_unavailable_reason(const char* text) {
  reason() = text;
}
