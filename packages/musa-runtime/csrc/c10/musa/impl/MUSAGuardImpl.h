// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/DeviceCapability.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/musa/MUSACompat.h>
#include <c10/musa/MUSAStream.h>

namespace c10::musa::impl {

// torch's generic interface to devices, streams and events. Callers: c10::DeviceGuard/StreamGuard, the autograd engine
// (deviceCount, streams of backward nodes), torch.Stream, torch.Event, torch.accelerator, FSDP, the pinned allocator. A
// Device or Stream argument may have index -1, "the current device": each function resolves it, otherwise torch would
// return streams of device -1 that select nothing.
struct C10_MUSA_API MUSAGuardImpl final : c10::impl::DeviceGuardImplInterface {
  static constexpr DeviceType static_type = DeviceType::PrivateUse1;

  MUSAGuardImpl() = default;
  explicit MUSAGuardImpl(DeviceType type) {
    TORCH_CHECK(type == DeviceType::PrivateUse1, "MUSAGuardImpl serves musa devices, not ", type);
  }

  DeviceType type() const override { return DeviceType::PrivateUse1; }
  Device exchangeDevice(Device device) const override;
  Device getDevice() const override;
  void setDevice(Device device) const override;
  void uncheckedSetDevice(Device device) const noexcept override;
  DeviceIndex deviceCount() const noexcept override;
  DeviceCapability getDeviceCapability(Device device) const override;
  void synchronizeDevice(DeviceIndex device) const override;

  Stream getStream(Device device) const override;
  Stream getDefaultStream(Device device) const override;
  Stream getStreamFromGlobalPool(Device device, bool is_high_priority = false) const override;
  Stream getNewStream(Device device, int priority = 0) const override;
  Stream exchangeStream(Stream stream) const override;
  void* getStreamNativeHandle(const Stream stream) const override;
  bool queryStream(const Stream& stream) const override;
  void synchronizeStream(const Stream& stream) const override;
  bool isStreamCapturing(const Stream& stream) const MUSA_SINCE_TORCH_2_12(override);
  void recordDataPtrOnStream(const DataPtr& data, const Stream& stream) const override;

  // Events are created by the first record, on the device of the stream.
  void record(void** event, const Stream& stream, const DeviceIndex device, const EventFlag flag) const override;
  void block(void* event, const Stream& stream) const override;
  bool queryEvent(void* event) const override;
  void synchronizeEvent(void* event) const override;
  void destroyEvent(void* event, const DeviceIndex device) const noexcept override;
  // Milliseconds.
  double elapsedTime(void* start, void* end, const DeviceIndex device) const override;
};

} // namespace c10::musa::impl
