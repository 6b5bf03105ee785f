// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSADeferredError.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAGuard.h>
#include <c10/musa/MUSAStream.h>

#include <optional>
#include <utility>

namespace c10::musa {

// Owns a musaEvent_t; movable, not copyable. The event is created by the first record, on the device of that stream, so an
// event that is never recorded costs nothing and touches no device. Not thread-safe.
class MUSAEvent {
 public:
  MUSAEvent() noexcept = default;
  explicit MUSAEvent(unsigned int flags) noexcept : flags_(flags) {}

  // Opens an event of another process.
  MUSAEvent(DeviceIndex device, const musaIpcEventHandle_t* handle) : device_index_(device) {
    MUSAGuard guard(device);
    C10_MUSA_CHECK(musaIpcOpenEventHandle(&event_, *handle));
  }

  ~MUSAEvent() { destroy(); }

  MUSAEvent(const MUSAEvent&) = delete;
  MUSAEvent& operator=(const MUSAEvent&) = delete;
  MUSAEvent(MUSAEvent&& other) noexcept { swap(other); }
  MUSAEvent& operator=(MUSAEvent&& other) noexcept {
    if (this != &other) {
      destroy();
      swap(other);
    }
    return *this;
  }

  operator musaEvent_t() const { return event_; }
  friend bool operator<(const MUSAEvent& left, const MUSAEvent& right) { return left.event_ < right.event_; }

  // Empty until the event exists.
  std::optional<Device> device() const {
    return isCreated() ? std::optional<Device>(Device(DeviceType::PrivateUse1, device_index_)) : std::nullopt;
  }
  bool isCreated() const { return event_ != nullptr; }
  DeviceIndex device_index() const { return device_index_; }
  musaEvent_t event() const { return event_; }

  void record() { record(getCurrentMUSAStream()); }
  void recordOnce(const MUSAStream& stream) {
    if (!recorded_) {
      record(stream);
    }
  }
  void record(const MUSAStream& stream) {
    create(stream.device_index());
    TORCH_CHECK(
        device_index_ == stream.device_index(), "An event of musa:", static_cast<int>(device_index_),
        " cannot be recorded on a stream of musa:", static_cast<int>(stream.device_index()),
        ".\nFix: use one event per device.");
    MUSAGuard guard(device_index_);
    C10_MUSA_CHECK(musaEventRecord(event_, stream.stream()));
    recorded_ = true;
  }

  // Makes work queued on the stream from now on wait for the event. The stream may be on another device.
  void block(const MUSAStream& stream) {
    if (isCreated()) {
      MUSAGuard guard(stream.device_index());
      C10_MUSA_CHECK(musaStreamWaitEvent(stream.stream(), event_, 0));
    }
  }

  // Whether the work before the event has finished; true if the event was never recorded.
  bool query() const {
    if (!isCreated()) {
      return true;
    }
    const musaError_t error = musaEventQuery(event_);
    if (error == musaErrorNotReady) {
      C10_MUSA_CLEAR_ERROR();
      return false;
    }
    if (C10_UNLIKELY(error != musaSuccess)) {
      throw_musa_error(error, "musaEventQuery(event)", __func__, __FILE__, __LINE__);
    }
    return true;
  }

  void synchronize() const {
    if (isCreated()) {
      C10_MUSA_CHECK(musaEventSynchronize(event_));
      check_deferred_error();
    }
  }

  // Milliseconds from this event to the other.
  float elapsed_time(const MUSAEvent& other) const {
    TORCH_CHECK_VALUE(
        !(flags_ & musaEventDisableTiming) && !(other.flags_ & musaEventDisableTiming),
        "Both events must be created with enable_timing=True.");
    TORCH_CHECK_VALUE(
        recorded_ && other.recorded_, "Both events must be recorded before the time between them can be queried.");
    TORCH_CHECK(
        device_index_ == other.device_index_,
        "Both events must be of one device, but they are of musa:", static_cast<int>(device_index_),
        " and musa:", static_cast<int>(other.device_index_), ".");
    TORCH_CHECK(
        query() && other.query(), "Both events must have finished.\nFix: call synchronize() on the later one first.");
    MUSAGuard guard(device_index_);
    float milliseconds = 0.0f;
    C10_MUSA_CHECK(musaEventElapsedTime(&milliseconds, event_, other.event_));
    return milliseconds;
  }

  // For another process to open. The event must be made with musaEventInterprocess | musaEventDisableTiming.
  void ipc_handle(musaIpcEventHandle_t* handle) {
    if (!isCreated()) {
      create(getCurrentMUSAStream().device_index());
    }
    MUSAGuard guard(device_index_);
    C10_MUSA_CHECK(musaIpcGetEventHandle(handle, event_));
  }

 private:
  void create(DeviceIndex device) {
    if (isCreated()) {
      return;
    }
    MUSAGuard guard(device);
    C10_MUSA_CHECK(musaEventCreateWithFlags(&event_, flags_));
    device_index_ = device;
  }

  void destroy() noexcept {
    if (event_ != nullptr) {
      // The SDK may have shut down: a failure cannot be reported.
      C10_MUSA_IGNORE_ERROR(musaEventDestroy(event_));
      event_ = nullptr;
      recorded_ = false;
    }
  }

  void swap(MUSAEvent& other) noexcept {
    std::swap(flags_, other.flags_);
    std::swap(recorded_, other.recorded_);
    std::swap(device_index_, other.device_index_);
    std::swap(event_, other.event_);
  }

  unsigned int flags_ = musaEventDisableTiming;
  bool recorded_ = false;
  DeviceIndex device_index_ = -1;
  musaEvent_t event_ = nullptr;
};

} // namespace c10::musa
