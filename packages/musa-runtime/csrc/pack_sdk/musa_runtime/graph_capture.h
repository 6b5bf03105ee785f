// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/Device.h>
#include <c10/musa/MUSAMacros.h>
#include <c10/musa/MUSAStream.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

// The capture of a graph, for kernels that run on the host: the SDK does not record them, so they refuse the capture, or add
// work to the graph that calls them in its replays.

namespace musa_runtime {

// Work that a pack adds to a graph. The graph destroys it after its last replay.
class C10_MUSA_API HostWork {
 public:
  virtual ~HostWork() = default;
  // Called when the capture ends: adds the last node, which marks the end of a replay.
  virtual void append_finish(c10::musa::MUSAStream stream) = 0;
  virtual void capture_ended() = 0;
  // Called around the launch of a replay. Its nodes may run long after it.
  virtual void replay_begins() = 0;
  virtual void replay_refused() = 0;
  virtual bool in_flight() const = 0;
};

// The capture of one graph, and the work that packs added in it.
//
// Locking: capture is single-threaded by torch's rules; the capturing threads use it one after another. Any thread may report
// a failure; failure_mutex_ guards failure_.
class C10_MUSA_API GraphCapture {
 public:
  explicit GraphCapture(c10::DeviceIndex device);
  ~GraphCapture();
  GraphCapture(const GraphCapture&) = delete;
  GraphCapture& operator=(const GraphCapture&) = delete;

  // Between these, current() returns it on the streams of the capture.
  void begin(unsigned long long capture_id);
  void end();
  // The capture that the current stream belongs to; null if there is none.
  static GraphCapture* current();

  // Records the first reason for which the capture cannot become a graph; empty if it can.
  void fail(const std::string& reason);
  std::string failure() const;

  c10::DeviceIndex device() const { return device_; }
  // Null until a pack adds work.
  HostWork* work() const { return work_.get(); }
  void set_work(std::unique_ptr<HostWork> work) { work_ = std::move(work); }

  // Destroys a capture once its last replay is over.
  static void retire(std::unique_ptr<GraphCapture> capture);

 private:
  c10::DeviceIndex device_;
  unsigned long long capture_id_ = 0;
  bool registered_ = false;
  mutable std::mutex failure_mutex_;
  std::string failure_;
  std::unique_ptr<HostWork> work_;
};

// The number of captures in progress in this process, on any thread.
C10_MUSA_API extern std::atomic<int> captures_running;

// Whether the current stream of the current device belongs to one of them.
C10_MUSA_API bool current_stream_is_recorded();

// Checked before every call of a kernel on the host: one load and one branch unless a graph is being captured on some thread.
inline bool capturing() {
  return captures_running.load(std::memory_order_relaxed) != 0 && current_stream_is_recorded();
}

// Whether the current capture is already marked as failed.
C10_MUSA_API bool capture_failed();

// Raises the error for an operator that a graph cannot record, and marks the current capture as failed.
[[noreturn]] C10_MUSA_API void refuse_to_capture(const std::string& op, const std::string& reason);

} // namespace musa_runtime
