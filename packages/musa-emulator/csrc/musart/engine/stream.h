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

// Where the stream stands now, with what the default stream waits for.
std::vector<Fence> fences_of(Stream& stream);
// Returns the error of the lost device that the fence's stream belongs to, if any.
musaError_t wait_for(const Fence& fence, Lock& lock);
MUSA_ENGINE musaError_t synchronize_stream(Stream& stream);
MUSA_ENGINE musaError_t query_stream(Stream& stream);
// In lazy mode runs one operation towards the fence, so that loops that poll end.
void nudge(const Fence& fence, Lock& lock);

// musaErrorNotPermitted where waiting would wait for the caller itself.
MUSA_ENGINE musaError_t may_wait();

// Makes a destroyed and drained stream available for reuse. With the lock held.
void recycle_stream(Stream& stream);
// Destroys the device's streams but the default one, waiting for their work.
void release_streams(Device& device, Lock& lock);
// Ends the worker threads; work that has not started is dropped.
void stop_workers();

} // namespace musa_emulator
