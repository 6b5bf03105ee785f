// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Stream capture: work submitted to a capturing stream becomes nodes of a graph.
//
// Everything here is guarded by the engine lock. A capture that meets an error is invalidated: it records nothing
// more, and only ending it makes its streams usable again.
//
// Which calls are refused, and with which codes, was measured on a CUDA 13.0 driver: docs/design/strictness.md.
#pragma once

#include "engine/graph.h"
#include "engine/state.h"

namespace musa_emulator {

struct Capture {
  uint64_t id = 0;
  musaStreamCaptureMode mode = musaStreamCaptureModeGlobal;
  std::thread::id owner;
  Stream* origin = nullptr;
  std::vector<Stream*> streams; // the origin and those joined through events
  std::vector<musaGraphNode_t> abandoned; // last nodes of joined streams that were destroyed
  musaGraph_t graph = nullptr;  // owned until the capture ends
  bool invalid = false;
};

MUSA_ENGINE musaError_t begin_capture(Stream& stream, musaStreamCaptureMode mode);
MUSA_ENGINE musaError_t end_capture(Stream& stream, musaGraph_t* graph);
MUSA_ENGINE musaError_t capture_info(
    Stream& stream, musaStreamCaptureStatus* status, unsigned long long* id, musaGraph_t* graph,
    const musaGraphNode_t** dependencies, size_t* count);

// With the lock held, for a capturing stream.
musaError_t capture_operation(Stream& stream, Operation operation);
musaError_t capture_record(Stream& stream, Event& event);
// With the lock held; sets `captured` when the wait has been dealt with here.
musaError_t capture_wait(Stream& stream, Event& event, unsigned flags, bool* captured);
void invalidate_capture(Stream& stream);
// Returns the graph where the capture ends with it; destroy it without the lock.
OwnedGraph leave_capture(Stream& stream);
musaError_t forbid_captured_event(Event& event);
// Work on the default stream would wait for blocking streams, which is impossible while they capture.
musaError_t forbid_implicit_dependency(const Stream& stream);

// Without the lock. A refused call invalidates the captures that forbid it.
MUSA_ENGINE musaError_t forbid_on_capturing(Stream& stream);
musaError_t forbid_while_capturing();
// Refuses a potentially unsafe call of this thread, unless its interaction mode or the modes of all captures permit it.
MUSA_ENGINE musaError_t forbid_unsafe_call();

void end_all_captures();

} // namespace musa_emulator
