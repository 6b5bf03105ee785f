// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Streams: creation, submission, and the scheduler that runs their work in one of the three modes.
#pragma once

#include "engine/state.h"

namespace musa_emulator {

MUSA_ENGINE musaError_t create_stream(Device& device, unsigned flags, int priority, Stream** stream);
MUSA_ENGINE musaError_t destroy_stream(musaStream_t handle);
// The stream behind a handle, including the default and the per-thread one. Null for a handle that is not alive.
MUSA_ENGINE Stream* resolve_stream(musaStream_t handle);

// Runs, queues or captures the operation, after `after` and after what the default-stream rules ask for.
MUSA_ENGINE musaError_t submit(Stream& stream, Operation operation, std::vector<Fence> after = {});
// As submit(), with the lock held and the stream not capturing. Returns with the lock held.
void submit_locked(Stream& stream, Operation operation, std::vector<Fence> after, Lock& lock);

// Whether inline mode may run work of this stream at once: it is idle, not captured, and nothing else has to run before. With
// the lock held.
inline bool may_run_now(const Engine& state, const Stream& stream) {
  const Device& device = *stream.device;
  return stream.idle() && state.active_captures.load(std::memory_order_relaxed) == 0 &&
      device.lost.load(std::memory_order_relaxed) == musaSuccess &&
      (!stream.blocking() || device.pending_blocking.load(std::memory_order_acquire) == 0);
}

// Accounts for work that has begun and ended with the lock held.
inline void count_done(Stream& stream) {
  const uint64_t sequence = stream.submitted.load(std::memory_order_relaxed) + 1;
  stream.submitted.store(sequence, std::memory_order_relaxed);
  stream.completed.store(sequence, std::memory_order_release);
}

// Inline mode's shortcut for work that is done sooner than it could be described: true when `work` has run in the
// stream's order, under the lock. False when the stream is busy, capturing or lost, or the mode is another one.
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

// Inline mode's way for a launch that its owner keeps: true when it has run, as submit() would have run it, at once.
// False, and nothing has happened, where it must wait, is captured, or the mode is another one.
MUSA_ENGINE bool launch_now(Stream& stream, Launch& launch);
// The same for a launch that takes about as long as locking does: it runs with the lock held, so it must not call the runtime.
MUSA_ENGINE bool launch_brief_now(Stream& stream, Launch& launch);

// Where the stream stands now, with what the default stream waits for.
std::vector<Fence> fences_of(Stream& stream);
// Returns the error of the lost device that the fence's stream belongs to, if any.
MUSA_ENGINE musaError_t wait_for(const Fence& fence, Lock& lock);
MUSA_ENGINE musaError_t synchronize_stream(Stream& stream);
MUSA_ENGINE musaError_t query_stream(Stream& stream);
// In lazy mode runs one operation towards the fence, so that loops that poll end.
void nudge(const Fence& fence, Lock& lock);

// Lazy mode: lets a thread of its own wait for the fence.
void drive(const Fence& fence);

// musaErrorNotPermitted where waiting would wait for the caller itself.
MUSA_ENGINE musaError_t may_wait();

// Makes a destroyed and drained stream available for reuse. With the lock held.
void recycle_stream(Stream& stream);
// Destroys the device's streams but the default one, waiting for their work.
void release_streams(Device& device, Lock& lock);
// Ends the worker threads; work that has not started is dropped.
void stop_workers();

} // namespace musa_emulator
