// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Streams: creation and submission, and the scheduler, which runs their work in one of three modes.
#pragma once

#include "engine/state.h"

namespace musa_emulator {

MUSA_ENGINE musaError_t create_stream(Device& device, unsigned flags, int priority, Stream** stream);
MUSA_ENGINE musaError_t destroy_stream(musaStream_t handle);
// Returns the stream of a handle, including the default and per-thread ones; nullptr if the handle is not alive.
MUSA_ENGINE Stream* resolve_stream(musaStream_t handle);

// Runs, queues or captures the operation, after `after` and the streams that the default-stream rules require.
MUSA_ENGINE musaError_t submit(Stream& stream, Operation operation, std::vector<Fence> after = {});
// As submit(), for a stream that is not capturing. The lock is held on entry and on return.
void submit_locked(Stream& stream, Operation operation, std::vector<Fence> after, Lock& lock);

// Whether inline mode may run work of this stream immediately: it is idle, not capturing, and depends on no other
// work. The lock must be held.
inline bool may_run_now(const Engine& state, const Stream& stream) {
  const Device& device = *stream.device;
  return stream.idle() && state.active_captures.load(std::memory_order_relaxed) == 0 &&
      device.lost.load(std::memory_order_relaxed) == musaSuccess &&
      (!stream.blocking() || device.pending_blocking.load(std::memory_order_acquire) == 0);
}

// Counts an operation that started and finished while the lock was held.
inline void count_done(Stream& stream) {
  const uint64_t sequence = stream.submitted.load(std::memory_order_relaxed) + 1;
  stream.submitted.store(sequence, std::memory_order_relaxed);
  stream.completed.store(sequence, std::memory_order_release);
}

// Fast path of inline mode, for work shorter than creating an operation. Returns true if `work` ran, in stream order
// and with the lock held; false if the stream is busy, capturing or lost, or in another mode.
template <class Work>
bool run_now(Stream& stream, Work&& work) {
  Engine& state = engine();
  if (state.config.mode != Mode::Inline) {
    return false;
  }
  Lock lock(state.mutex);
  if (!may_run_now(state, stream)) {
    return false;
  }
  work();
  count_done(stream);
  return true;
}

// Inline mode: runs a launch that the caller owns immediately, and returns true. Returns false, without doing
// anything, if the launch must wait or is captured, or in another mode.
MUSA_ENGINE bool launch_now(Stream& stream, Launch& launch);
// As launch_now(), for a launch as short as locking: the lock is held while it runs, so it must not call the runtime.
MUSA_ENGINE bool launch_brief_now(Stream& stream, Launch& launch);

// Returns fences for the stream's current end; for the default stream, also for the streams that it waits for.
std::vector<Fence> fences_of(Stream& stream);
// Returns the sticky error of the device of the fence's stream, if any.
MUSA_ENGINE musaError_t wait_for(const Fence& fence, Lock& lock);
MUSA_ENGINE musaError_t synchronize_stream(Stream& stream);
MUSA_ENGINE musaError_t query_stream(Stream& stream);
MUSA_ENGINE musaError_t synchronize_device(Device& device);
// As synchronize_device(), but allowed during captures, for calls that wait without being a synchronization.
MUSA_ENGINE musaError_t wait_for_device(Device& device);
// Lazy mode: runs one operation that the fence depends on, so that polling loops terminate.
void nudge(const Fence& fence, Lock& lock);

// Lazy mode: makes a separate thread wait for the fence.
void drive(const Fence& fence);

// Returns musaErrorNotPermitted if the caller would wait for itself.
MUSA_ENGINE musaError_t may_wait();

// Creates the default stream of each device. The lock must not be held.
void create_default_streams(Engine& state);
// Makes a destroyed stream without pending work available for reuse. The lock must be held.
void recycle_stream(Stream& stream);
// Destroys the device's streams except the default one, after waiting for their work.
void release_streams(Device& device, Lock& lock);
// Stops the worker threads; work that has not started is dropped.
void stop_workers();

} // namespace musa_emulator
