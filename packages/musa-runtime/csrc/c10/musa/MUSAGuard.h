// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/impl/InlineDeviceGuard.h>
#include <c10/core/impl/InlineStreamGuard.h>
#include <c10/musa/MUSAKernelGuard.h>
#include <c10/musa/MUSAStream.h>
#include <c10/musa/impl/MUSAGuardImpl.h>

#include <optional>

namespace c10::musa {

// Sets the device for a scope, without virtual calls, unlike c10::DeviceGuard.
struct MUSAGuard {
  explicit MUSAGuard() = delete;
  explicit MUSAGuard(DeviceIndex device) : guard_(device) {}
  explicit MUSAGuard(Device device) : guard_(device) {}
  MUSAGuard(const MUSAGuard&) = delete;
  MUSAGuard& operator=(const MUSAGuard&) = delete;

  void set_device(Device device) { guard_.set_device(device); }
  void set_index(DeviceIndex device) { guard_.set_index(device); }
  Device original_device() const { return guard_.original_device(); }
  Device current_device() const { return guard_.current_device(); }

 private:
  c10::impl::InlineDeviceGuard<impl::MUSAGuardImpl> guard_;
};

// Sets the device only once a device is given.
struct OptionalMUSAGuard {
  explicit OptionalMUSAGuard() = default;
  explicit OptionalMUSAGuard(std::optional<Device> device) : guard_(device) {}
  explicit OptionalMUSAGuard(std::optional<DeviceIndex> device) : guard_(device) {}
  OptionalMUSAGuard(const OptionalMUSAGuard&) = delete;
  OptionalMUSAGuard& operator=(const OptionalMUSAGuard&) = delete;

  void set_device(Device device) { guard_.set_device(device); }
  void set_index(DeviceIndex device) { guard_.set_index(device); }
  void reset() { guard_.reset(); }

 private:
  c10::impl::InlineOptionalDeviceGuard<impl::MUSAGuardImpl> guard_;
};

// Sets device and current stream for a scope.
struct MUSAStreamGuard {
  explicit MUSAStreamGuard() = delete;
  explicit MUSAStreamGuard(Stream stream) : guard_(stream) {}
  MUSAStreamGuard(const MUSAStreamGuard&) = delete;
  MUSAStreamGuard& operator=(const MUSAStreamGuard&) = delete;

  void reset_stream(Stream stream) { guard_.reset_stream(stream); }
  MUSAStream original_stream() const { return MUSAStream(MUSAStream::UNCHECKED, guard_.original_stream()); }
  MUSAStream current_stream() const { return MUSAStream(MUSAStream::UNCHECKED, guard_.current_stream()); }

 private:
  c10::impl::InlineStreamGuard<impl::MUSAGuardImpl> guard_;
};

} // namespace c10::musa
