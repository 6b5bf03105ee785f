// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/capture.h"

#include <algorithm>
#include <unordered_set>

#include "engine/api.h"
#include "engine/graph.h"
#include "engine/thread_state.h"

namespace musa_emulator {
namespace {

void merge_frontier(std::vector<musaGraphNode_t>& into, const std::vector<musaGraphNode_t>& from) {
  for (musaGraphNode_t node : from) {
    if (std::find(into.begin(), into.end(), node) == into.end()) {
      into.push_back(node);
    }
  }
}

Capture* find_capture(uint64_t id) {
  const auto found = engine().captures.find(id);
  return found != engine().captures.end() ? found->second.get() : nullptr;
}

// Detaches every stream and removes the capture. The caller takes ownership of the graph.
void close_capture(Capture& capture) {
  Engine& state = engine();
  for (Stream* stream : capture.streams) {
    stream->capture.store(nullptr);
    stream->capture_frontier.clear();
  }
  if (state.active_captures.fetch_sub(1) == 1) {
    gate.fetch_and(~uint32_t{kGateCapturing});
  }
  state.captures.erase(capture.id);
}

// Whether the origin's last nodes depend on all work of the joined streams.
bool all_joined(const Capture& capture) {
  std::unordered_set<musaGraphNode_t> reached;
  std::vector<musaGraphNode_t> stack = capture.origin->capture_frontier;
  while (!stack.empty()) {
    musaGraphNode_t node = stack.back();
    stack.pop_back();
    if (reached.insert(node).second) {
      stack.insert(stack.end(), node->dependencies.begin(), node->dependencies.end());
    }
  }
  const auto joined = [&reached](musaGraphNode_t node) { return reached.contains(node); };
  return std::all_of(capture.abandoned.begin(), capture.abandoned.end(), joined) &&
      std::all_of(capture.streams.begin(), capture.streams.end(), [&joined](const Stream* stream) {
           return std::all_of(stream->capture_frontier.begin(), stream->capture_frontier.end(), joined);
         });
}

// Calls `body` for each capturing stream that work on this default stream would wait for.
template <class Body>
void for_each_implicit_dependency(const Stream& stream, Body&& body) {
  if (!stream.legacy || engine().active_captures.load(std::memory_order_relaxed) == 0) {
    return;
  }
  for (Stream* other : stream.device->streams) {
    if (other->blocking() && other->capture.load() != nullptr) {
      body(*other);
    }
  }
}

bool depends_on_capture(const Stream& stream) {
  bool found = false;
  for_each_implicit_dependency(stream, [&found](Stream&) { found = true; });
  return found;
}

} // namespace

musaError_t begin_capture(Stream& stream, musaStreamCaptureMode mode) {
  if (mode < musaStreamCaptureModeGlobal || mode > musaStreamCaptureModeRelaxed) {
    return musaErrorInvalidValue;
  }
  Engine& state = engine();
  Lock lock(state.mutex);
  if (stream.legacy) {
    return musaErrorStreamCaptureUnsupported;
  }
  if (stream.capture.load() != nullptr) {
    return musaErrorIllegalState;
  }
  auto capture = std::make_unique<Capture>();
  capture->id = state.next_capture_id++;
  capture->mode = mode;
  capture->owner = std::this_thread::get_id();
  capture->origin = &stream;
  capture->streams = {&stream};
  capture->graph = create_graph();
  stream.capture.store(capture.get());
  stream.capture_frontier.clear();
  state.captures.emplace(capture->id, std::move(capture));
  if (state.active_captures.fetch_add(1) == 0) {
    gate.fetch_or(kGateCapturing);
  }
  return musaSuccess;
}

musaError_t end_capture(Stream& stream, musaGraph_t* graph) {
  OwnedGraph discarded; // destroyed after the lock is released
  Lock lock(engine().mutex);
  *graph = nullptr;
  Capture* capture = stream.capture.load();
  if (capture == nullptr) {
    return musaErrorIllegalState;
  }
  if (capture->origin != &stream) {
    capture->invalid = true;
    return musaErrorStreamCaptureUnmatched;
  }
  musaGraph_t captured = capture->graph;
  musaError_t status = musaSuccess;
  if (capture->mode != musaStreamCaptureModeRelaxed && capture->owner != std::this_thread::get_id()) {
    status = musaErrorStreamCaptureWrongThread; // the capture ends nevertheless
  } else if (capture->invalid) {
    status = musaErrorStreamCaptureInvalidated;
  } else if (!all_joined(*capture)) {
    status = musaErrorStreamCaptureUnjoined;
  }
  close_capture(*capture);
  if (status != musaSuccess) {
    discarded = withdraw_graph(captured);
    return status;
  }
  *graph = captured;
  return musaSuccess;
}

musaError_t capture_info(
    Stream& stream, musaStreamCaptureStatus* status, unsigned long long* id, musaGraph_t* graph,
    const musaGraphNode_t** dependencies, size_t* count) {
  Lock lock(engine().mutex);
  const Capture* capture = stream.capture.load();
  if (capture == nullptr) {
    *status = musaStreamCaptureStatusNone;
    return depends_on_capture(stream) ? musaErrorStreamCaptureImplicit : musaSuccess; // a query invalidates nothing
  }
  *status = capture->invalid ? musaStreamCaptureStatusInvalidated : musaStreamCaptureStatusActive;
  if (id != nullptr) {
    *id = capture->id;
  }
  if (graph != nullptr) {
    *graph = capture->graph;
  }
  if (dependencies != nullptr) {
    *dependencies = stream.capture_frontier.data();
  }
  if (count != nullptr) {
    *count = stream.capture_frontier.size();
  }
  return musaSuccess;
}

musaError_t capture_operation(Stream& stream, Operation operation) {
  const Capture& capture = *stream.capture.load();
  if (capture.invalid) {
    return musaErrorStreamCaptureInvalidated;
  }
  if (std::holds_alternative<CallbackOperation>(operation)) {
    invalidate_capture(stream);
    return musaErrorStreamCaptureUnsupported; // deprecated in favor of host functions, which can be captured
  }
  stream.capture_frontier = {add_node(*capture.graph, std::move(operation), stream.capture_frontier)};
  return musaSuccess;
}

musaError_t capture_record(Stream& stream, Event& event) {
  const Capture& capture = *stream.capture.load();
  if (capture.invalid) {
    return musaErrorStreamCaptureInvalidated;
  }
  ++event.generation;
  event.capture_id = capture.id;
  event.capture_frontier = stream.capture_frontier;
  return musaSuccess;
}

musaError_t capture_wait(Stream& stream, Event& event, unsigned flags, bool* captured) {
  Capture* mine = stream.capture.load();
  Capture* theirs = event.capture_id != 0 ? find_capture(event.capture_id) : nullptr;
  *captured = true;
  if (mine != nullptr && mine->invalid) {
    return musaErrorStreamCaptureInvalidated;
  }
  if (mine == nullptr && event.capture_id == 0) {
    *captured = false;
    return musaSuccess;
  }
  if (mine != nullptr && event.capture_id == 0) {
    if ((flags & musaEventWaitExternal) != 0) {
      return capture_operation(stream, WaitOperation{&event});
    }
    if (!event.recorded) {
      return musaSuccess;
    }
    mine->invalid = true;
    return musaErrorStreamCaptureIsolation;
  }
  if (theirs == nullptr) {
    if (mine != nullptr) {
      mine->invalid = true;
    }
    return musaErrorInvalidValue; // recorded in a capture that has ended
  }
  if (theirs->invalid) {
    return musaErrorStreamCaptureInvalidated;
  }
  if (mine != nullptr && mine != theirs) {
    mine->invalid = true;
    theirs->invalid = true;
    return musaErrorStreamCaptureMerge;
  }
  if (mine == nullptr) {
    if (stream.legacy) {
      theirs->invalid = true;
      return musaErrorStreamCaptureImplicit;
    }
    theirs->streams.push_back(&stream);
    stream.capture.store(theirs);
    stream.capture_frontier.clear();
  }
  merge_frontier(stream.capture_frontier, event.capture_frontier);
  return musaSuccess;
}

void invalidate_capture(Stream& stream) { stream.capture.load()->invalid = true; }

OwnedGraph leave_capture(Stream& stream) {
  Capture& capture = *stream.capture.load();
  std::erase(capture.streams, &stream);
  merge_frontier(capture.abandoned, stream.capture_frontier);
  stream.capture.store(nullptr);
  stream.capture_frontier.clear();
  if (capture.streams.empty() || capture.origin == &stream) {
    musaGraph_t graph = capture.graph;
    close_capture(capture); // no stream is left that could end it
    return withdraw_graph(graph);
  }
  return nullptr;
}

musaError_t forbid_captured_event(Event& event) {
  Capture* capture = find_capture(event.capture_id);
  if (capture == nullptr) {
    return musaErrorInvalidValue; // the capture has ended, so the event has no record to query
  }
  capture->invalid = true;
  return musaErrorCapturedEvent;
}

musaError_t forbid_implicit_dependency(const Stream& stream) {
  musaError_t status = musaSuccess;
  for_each_implicit_dependency(stream, [&status](Stream& other) {
    invalidate_capture(other);
    status = musaErrorStreamCaptureImplicit;
  });
  return status;
}

musaError_t forbid_on_capturing(Stream& stream) {
  if (engine().active_captures.load(std::memory_order_acquire) == 0) {
    return musaSuccess;
  }
  Lock lock(engine().mutex);
  if (stream.capture.load() != nullptr) {
    invalidate_capture(stream);
    return musaErrorStreamCaptureUnsupported;
  }
  return forbid_implicit_dependency(stream);
}

musaError_t forbid_while_capturing() {
  Engine& state = engine();
  if (state.active_captures.load(std::memory_order_acquire) == 0) {
    return musaSuccess;
  }
  Lock lock(state.mutex);
  for (auto& [id, capture] : state.captures) {
    capture->invalid = true;
  }
  return state.captures.empty() ? musaSuccess : musaErrorStreamCaptureUnsupported;
}

musaError_t forbid_unsafe_call() {
  const musaStreamCaptureMode interaction = thread_state().capture_mode;
  if (interaction == musaStreamCaptureModeRelaxed) {
    return musaSuccess;
  }
  Engine& state = engine();
  Lock lock(state.mutex);
  musaError_t status = musaSuccess;
  for (auto& [id, capture] : state.captures) {
    const bool mine = capture->owner == std::this_thread::get_id();
    const bool global = capture->mode == musaStreamCaptureModeGlobal && interaction == musaStreamCaptureModeGlobal;
    if (capture->mode != musaStreamCaptureModeRelaxed && (mine || global)) {
      capture->invalid = true;
      status = musaErrorStreamCaptureUnsupported;
    }
  }
  return status;
}

void end_all_captures() {
  Engine& state = engine();
  std::vector<OwnedGraph> discarded;
  Lock lock(state.mutex);
  while (!state.captures.empty()) {
    Capture& capture = *state.captures.begin()->second;
    musaGraph_t graph = capture.graph;
    close_capture(capture);
    discarded.push_back(withdraw_graph(graph));
  }
}

} // namespace musa_emulator
