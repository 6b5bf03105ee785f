// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The objects behind device, stream and event handles.
//
// Locking. `engine().mutex` guards everything below that is not marked otherwise. Order: engine().mutex, then the
// memory lock (memory.h), then the fault lock (fault.cpp). No lock is held while a host function or a kernel runs, except
// the brief launches of the emulator's own libraries (launch_brief_now).
// Fields marked (atomic) may be read without the lock and are written with it held.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "driver_types.h"
#include "engine/config.h"
#include "engine/export.h"
#include "engine/operation.h"

namespace musa_emulator {

struct Device;
struct Capture;

// A point in a stream's work: reached when the stream has finished that many operations. Streams are never deleted
// and their counters never go back, so a fence stays meaningful after the stream has been destroyed.
struct Fence {
  MUstream_st* stream = nullptr;
  uint64_t sequence = 0;
  bool reached() const;
};

struct Task {
  Operation operation;
  std::vector<Fence> after;
  uint32_t correlation = 0; // of the call that submitted it; activity.h
};

} // namespace musa_emulator

struct MUstream_st {
  enum : uint32_t { kAlive = 0x53545245, kDead = 0xdead5352 };

  // Set at creation; constant while the handle is alive.
  std::atomic<uint32_t> magic{kDead}; // (atomic) first, so that a stale handle is recognised
  musa_emulator::Device* device = nullptr;
  unsigned flags = 0;
  int priority = 0;
  uint64_t id = 0;
  bool legacy = false;      // the device's default stream
  bool owned_by_user = false; // counted by musaEmulatorLiveStreams

  std::atomic<uint64_t> submitted{0}; // (atomic)
  std::atomic<uint64_t> completed{0}; // (atomic) the running operation is not completed
  std::deque<musa_emulator::Task> queue; // submitted and not started
  bool running = false;
  musaStreamAttrValue attributes[2] = {};

  // The worker thread: always in async mode, in other modes while the queue waits for another process.
  std::condition_variable wake;
  bool worker_alive = false;
  bool worker_blocked = false; // its first task waits for a fence
  bool handed_to_worker = false;
  // Lazy mode: a thread sees to it that all up to this is run.
  uint64_t driven_to = 0;
  bool driven = false;

  std::atomic<musa_emulator::Capture*> capture{nullptr}; // (atomic)
  std::vector<musaGraphNode_t> capture_frontier;

  bool blocking() const { return legacy || (flags & musaStreamNonBlocking) == 0; }
  bool idle() const {
    return completed.load(std::memory_order_acquire) == submitted.load(std::memory_order_relaxed);
  }
};

struct MUevent_st {
  enum : uint32_t { kAlive = 0x45564e54, kDead = 0xdead4556 };

  std::atomic<uint32_t> magic{kDead}; // (atomic)
  unsigned flags = 0;
  musa_emulator::Device* device = nullptr;

  uint64_t generation = 0; // counts records over the lives of the handle
  bool recorded = false;
  size_t place = 0; // in the list of live events
  musa_emulator::Fence fence;
  int64_t nanoseconds = 0; // steady clock at completion; 0 until the record has run
  uint64_t capture_id = 0; // non-zero while the last record was captured
  std::vector<musaGraphNode_t> capture_frontier;
  std::shared_ptr<musa_emulator::InterprocessEvent> shared;
};

namespace musa_emulator {

using Stream = ::MUstream_st;
using Event = ::MUevent_st;

inline bool Fence::reached() const {
  return stream == nullptr || stream->completed.load(std::memory_order_acquire) >= sequence;
}

struct Device {
  int ordinal = 0;
  int physical = 0;
  musaDeviceProp properties = {};
  std::atomic<bool> active{false};             // (atomic) something needed a context
  std::atomic<musaError_t> lost{musaSuccess};  // (atomic) the error every call reports
  std::atomic<uint64_t> pending_blocking{0};   // (atomic) unfinished operations of the default and blocking streams
  std::vector<Stream*> streams;                // the default stream first; destroyed ones until they are drained
  Stream* legacy = nullptr;
  std::set<int> peers;                         // access enabled to
  std::map<int, size_t> limits;
  unsigned flags = 0;
};

struct Engine {
  Config config;
  std::vector<std::unique_ptr<Device>> devices;

  std::mutex mutex;
  std::condition_variable progress; // an operation has finished
  int waiting = 0;                  // threads waiting on `progress`
  int blocked_workers = 0;
  int drivers = 0;                  // threads that only wait, so that work is run
  std::atomic<size_t> queued{0};    // (atomic) tasks in all queues
  bool stopping = false;

  std::deque<Stream*> free_streams; // reused oldest first
  std::deque<Event*> free_events;
  std::atomic<size_t> live_streams{0}; // (atomic)
  std::atomic<size_t> live_events{0};  // (atomic)
  std::atomic<size_t> live_graphs{0};  // (atomic)
  uint64_t next_stream_id = 1;

  std::map<uint64_t, std::unique_ptr<Capture>> captures;
  std::atomic<size_t> active_captures{0}; // (atomic)
  uint64_t next_capture_id = 1;
};

// The engine; never destroyed, so that work in flight at exit has something to stand on.
MUSA_ENGINE Engine& engine();

using Lock = std::unique_lock<std::mutex>;

} // namespace musa_emulator
