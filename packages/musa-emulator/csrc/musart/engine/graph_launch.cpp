// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/graph_launch.h"

#include <utility>

#include "engine/activity.h"
#include "engine/capture.h"
#include "engine/event.h"
#include "engine/graph.h"
#include "engine/stream.h"

namespace musa_emulator {

musaError_t launch_graph(musaGraphExec_t exec, Stream& stream) {
  Engine& state = engine();
  Lock lock(state.mutex);
  if (!is_executable(exec)) {
    return musaErrorInvalidResourceHandle;
  }
  if (state.active_captures.load(std::memory_order_relaxed) != 0) {
    if (const Capture* capture = stream.capture.load()) {
      if (capture->invalid) {
        return musaErrorStreamCaptureInvalidated;
      }
      stream.capture_frontier = {add_child(*capture->graph, *exec->source, stream.capture_frontier)};
      return musaSuccess;
    }
    if (const musaError_t status = forbid_implicit_dependency(stream); status != musaSuccess) {
      return status;
    }
  }
  if (const musaError_t lost = stream.device->lost.load(); lost != musaSuccess) {
    return lost;
  }
  auto run = std::make_shared<GraphRun>();
  run->plan = exec->plan;
  run->stream = &stream;
  run->correlation = current_correlation();
  std::vector<Fence> after;
  for (const ExecutableNode& node : *exec->plan) {
    if (const auto* record = std::get_if<RecordOperation>(&node.operation)) {
      run->records.push_back(begin_record(*record->event, stream));
    } else if (const auto* wait = std::get_if<WaitOperation>(&node.operation)) {
      after.push_back(wait->event->fence); // waited for before the graph starts, which is earlier than necessary
    } else if (const auto* kernel = std::get_if<KernelOperation>(&node.operation)) {
      run->waits_for_others |= kernel->launch->waits_for_others();
    }
  }
  submit_locked(stream, GraphOperation{std::move(run)}, std::move(after), lock);
  return musaSuccess;
}

} // namespace musa_emulator
