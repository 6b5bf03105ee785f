// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The objects behind device, stream and event handles.
//
// Locking: `engine().mutex` guards all fields below that are not marked otherwise. Lock order: engine().mutex, the
// memory lock (memory.h), the fault lock (fault.cpp). No lock is held while a host function or a kernel runs, except
// for brief launches of the emulator's own libraries (launch_brief_now). Fields marked (atomic) are written with the
// lock held and may be read without it.
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
#include "engine/usage.h"

namespace musa_emulator {

struct Device;
struct Capture;

// A point in a stream's work, reached when the stream has completed that many operations. Streams are never deleted
// and their counters never decrease, so a fence stays valid after the stream is destroyed.
struct Fence {
  MUstream_st* stream = nullptr;
  uint64_t sequence = 0;
  bool reached() const;
};

struct Task {
  Operation operation;
  std::vector<Fence> after;
  uint32_t correlation = 0; // of the call that submitted the task; activity.h
};

} // namespace musa_emulator

struct MUstream_st {
  enum : uint32_t { kAlive = 0x53545245, kDead = 0xdead5352 };

  // Set at creation; constant while the handle is alive.
  std::atomic<uint32_t> magic{kDead}; // (atomic) first, so that a stale handle is detected
  musa_emulator::Device* device = nullptr;
  unsigned flags = 0;
  int priority = 0;
  uint64_t id = 0;
  bool legacy = false;      // the device's default stream
  bool owned_by_user = false; // counted by musaEmulatorLiveStreams

  std::atomic<uint64_t> submitted{0}; // (atomic)
  std::atomic<uint64_t> completed{0}; // (atomic) excludes the running operation
  std::deque<musa_emulator::Task> queue; // submitted, not started
  bool running = false;

  // The worker thread: always used in async mode, in other modes while the queue waits for another process.
  std::condition_variable wake;
  bool worker_alive = false;
  bool worker_blocked = false; // the first task waits for a fence
  bool handed_to_worker = false;
  // Lazy mode: a thread makes all operations up to this one run.
  uint64_t driven_to = 0;
  bool driven = false;

  std::atomic<musa_emulator::Capture*> capture{nullptr}; // (atomic)
  std::vector<musaGraphNode_t> capture_frontier;

  bool blocking() const { return legacy || (flags & musaStreamNonBlocking) == 0; }
  bool idle() const { return completed.load(std::memory_order_acquire) == submitted.load(std::memory_order_relaxed); }
};

struct MUevent_st {
  enum : uint32_t { kAlive = 0x45564e54, kDead = 0xdead4556 };

  std::atomic<uint32_t> magic{kDead}; // (atomic)
  unsigned flags = 0;
  musa_emulator::Device* device = nullptr;

  uint64_t generation = 0; // number of records over all uses of the handle
  bool recorded = false;
  size_t place = 0; // index in the list of live events
  musa_emulator::Fence fence;
  int64_t nanoseconds = 0; // steady clock at completion; 0 until then
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
  Device(int visible_number, int physical_number)
      : ordinal(visible_number), physical(physical_number), usage(usage_of(physical_number)), active(usage.active) {}

  int ordinal;
  int physical;
  DeviceUsage& usage;
  std::atomic<bool>& active;                   // (atomic) a context was needed
  musaDeviceProp properties = {};
  std::atomic<musaError_t> lost{musaSuccess};  // (atomic) the sticky error
  std::atomic<uint64_t> pending_blocking{0};   // (atomic) unfinished operations of the default and blocking streams
  std::vector<Stream*> streams;                // the default stream first; includes destroyed ones with pending work
  Stream* legacy = nullptr;
  std::set<int> peers;                         // devices whose memory may be accessed
  unsigned flags = 0;
};

struct Engine {
  Config config;
  std::vector<std::unique_ptr<Device>> devices;

  std::mutex mutex;
  std::condition_variable progress; // an operation has finished
  int waiting = 0;                  // threads waiting on `progress`
  int blocked_workers = 0;
  int drivers = 0;                  // threads that wait only to make work run
  std::atomic<size_t> queued{0};    // (atomic) tasks in all queues
  bool stopping = false;

  std::deque<Stream*> free_streams; // reused in FIFO order
  std::deque<Event*> free_events;
  std::atomic<size_t> live_streams{0}; // (atomic)
  std::atomic<size_t> live_events{0};  // (atomic)
  std::atomic<size_t> live_graphs{0};  // (atomic)
  uint64_t next_stream_id = 1;

  std::map<uint64_t, std::unique_ptr<Capture>> captures;
  std::atomic<size_t> active_captures{0}; // (atomic)
  uint64_t next_capture_id = 1;
};

// The engine. Never destroyed, because work may still run at process exit.
MUSA_ENGINE Engine& engine();

using Lock = std::unique_lock<std::mutex>;

} // namespace musa_emulator
