// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Stream capture: work submitted to a capturing stream becomes nodes of a graph.
//
// The engine lock guards everything here. An error invalidates the capture: it records nothing more, and its streams
// are unusable until it is ended.
//
// Rejected calls and their error codes match measurements on a CUDA 13.0 driver: docs/design/strictness.md.
#pragma once

#include "engine/graph.h"
#include "engine/state.h"

namespace musa_emulator {

struct Capture {
  uint64_t id = 0;
  musaStreamCaptureMode mode = musaStreamCaptureModeGlobal;
  std::thread::id owner;
  Stream* origin = nullptr;
  std::vector<Stream*> streams; // the origin and the streams joined through events
  std::vector<musaGraphNode_t> abandoned; // last nodes of joined streams that were destroyed
  musaGraph_t graph = nullptr;  // owned until the capture ends
  bool invalid = false;
};

MUSA_ENGINE musaError_t begin_capture(Stream& stream, musaStreamCaptureMode mode);
MUSA_ENGINE musaError_t end_capture(Stream& stream, musaGraph_t* graph);
MUSA_ENGINE musaError_t capture_info(
    Stream& stream, musaStreamCaptureStatus* status, unsigned long long* id, musaGraph_t* graph,
    const musaGraphNode_t** dependencies, size_t* count);

// For a capturing stream. The lock must be held.
musaError_t capture_operation(Stream& stream, Operation operation);
musaError_t capture_record(Stream& stream, Event& event);
// The lock must be held. Sets `captured` if the wait was handled here.
musaError_t capture_wait(Stream& stream, Event& event, unsigned flags, bool* captured);
void invalidate_capture(Stream& stream);
// Returns the graph if the capture ends here; destroy it without the lock.
OwnedGraph leave_capture(Stream& stream);
musaError_t forbid_captured_event(Event& event);
// Work on the default stream would wait for blocking streams, which is impossible while they capture.
musaError_t forbid_implicit_dependency(const Stream& stream);

// The lock must not be held. A rejected call invalidates the captures that forbid it.
MUSA_ENGINE musaError_t forbid_on_capturing(Stream& stream);
musaError_t forbid_while_capturing();
// Rejects a potentially unsafe call of this thread, unless its interaction mode or the modes of all captures permit
// it.
MUSA_ENGINE musaError_t forbid_unsafe_call();

void end_all_captures();

} // namespace musa_emulator
