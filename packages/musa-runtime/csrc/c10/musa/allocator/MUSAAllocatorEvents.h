// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSACaptures.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAGraphsC10Utils.h>
#include <c10/musa/MUSAStream.h>

#include <array>
#include <mutex>
#include <optional>
#include <vector>

// Events by which the caching allocator sees that other streams have finished with freed memory. Functions return error
// codes: they run in deleters, and the allocator must restore its state before it raises.
namespace c10::musa::MUSACachingAllocator {

// Sets the current device by SDK calls alone, without exceptions (see above).
class CurrentDevice {
 public:
  explicit CurrentDevice(DeviceIndex device) {
    error_ = musaGetDevice(&before_);
    if (error_ == musaSuccess && before_ != device) {
      error_ = musaSetDevice(device);
      switched_ = error_ == musaSuccess;
    }
  }
  ~CurrentDevice() {
    if (switched_) {
      restore_device(static_cast<DeviceIndex>(before_));
    }
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  musaError_t error() const { return error_; }

 private:
  musaError_t error_ = musaSuccess;
  int before_ = 0;
  bool switched_ = false;
};

// Runs a call that captures forbid to threads whose interaction mode is not relaxed.
template <class Call>
musaError_t relaxed(Call&& call) {
  const MUSAStreamCaptureModeGuard guard;
  return call();
}

// Permission for calls that captures forbid and that may wait for the device, such as musaFree. The thread is relaxed, so
// that other threads can begin captures meanwhile. With an SDK that cannot exempt a thread, captures wait for the calls.
class WaitPermit {
 public:
  WaitPermit()
      : relaxed_(exchange_stream_capture_mode(&mode_)), between_(relaxed_ ? std::nullopt : BetweenCaptures::enter()) {}
  ~WaitPermit() {
    if (relaxed_) {
      exchange_stream_capture_mode(&mode_);
    }
  }
  WaitPermit(const WaitPermit&) = delete;
  WaitPermit& operator=(const WaitPermit&) = delete;

  // False if a capture in progress forbids the calls.
  bool granted() const { return relaxed_ || between_.has_value(); }

 private:
  musaStreamCaptureMode mode_ = musaStreamCaptureModeRelaxed;
  const bool relaxed_;
  const std::optional<BetweenCaptures> between_;
};

// Whether the SDK has shut down at process exit; its memory is released then.
inline bool is_unloading(musaError_t error) { return error == musaErrorMusartUnloading; }

// Events are created once and reused. mutex guards idle, is a leaf, and is not held over SDK calls.
struct EventPool {
  std::mutex mutex;
  std::vector<musaEvent_t> idle;
};

inline EventPool& event_pool(DeviceIndex device) {
  // Leaked: memory is freed until the end of the process.
  static auto& pools = *new std::array<EventPool, C10_COMPILE_TIME_MAX_MUSA_DEVICES>();
  return pools[device];
}

inline void recycle_event(DeviceIndex device, musaEvent_t event) {
  EventPool& pool = event_pool(device);
  std::lock_guard<std::mutex> guard(pool.mutex);
  pool.idle.push_back(event);
}

// Records on the stream's own device, which may differ from that of the memory. Sets *call to the text of the call whose
// code is returned.
inline musaError_t record_event(
    const BetweenCaptures& /*proof*/, DeviceIndex device, musaStream_t stream, musaEvent_t* event, const char** call) {
  const CurrentDevice current(device);
  if (current.error() != musaSuccess) {
    *call = "musaSetDevice(device)";
    return current.error();
  }
  EventPool& pool = event_pool(device);
  {
    std::lock_guard<std::mutex> guard(pool.mutex);
    if (!pool.idle.empty()) {
      *event = pool.idle.back();
      pool.idle.pop_back();
    }
  }
  if (*event == nullptr) {
    *call = "musaEventCreateWithFlags(event, musaEventDisableTiming)";
    const musaError_t error = musaEventCreateWithFlags(event, musaEventDisableTiming);
    if (error != musaSuccess) {
      *event = nullptr;
      return error;
    }
  }
  *call = "musaEventRecord(event, stream)";
  const musaError_t error = musaEventRecord(*event, stream);
  if (error != musaSuccess) {
    recycle_event(device, *event);
    *event = nullptr;
  }
  return error;
}

// Returns musaErrorNotReady if the event has not finished.
inline musaError_t poll_event(const BetweenCaptures& /*proof*/, musaEvent_t event) {
  return relaxed([&] { return musaEventQuery(event); });
}

// Returns musaErrorNotReady if a capture in progress forbids the wait.
inline musaError_t wait_for_event(musaEvent_t event) {
  const WaitPermit permit;
  return permit.granted() ? musaEventSynchronize(event) : musaErrorNotReady;
}

} // namespace c10::musa::MUSACachingAllocator
