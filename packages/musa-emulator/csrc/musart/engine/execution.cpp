// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/execution.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "engine/activity.h"
#include "engine/api.h"
#include "engine/event.h"
#include "engine/interprocess.h"
#include "engine/memory.h"
#include "engine/segfault.h"
#include "engine/virtual_memory.h"

namespace musa_emulator {
namespace {

template <class Element>
void fill_rows(const FillOperation& fill) {
  for (size_t z = 0; z < fill.depth; ++z) {
    for (size_t y = 0; y < fill.height; ++y) {
      char* row = fill.dst + z * fill.slice + y * fill.pitch;
      std::fill_n(reinterpret_cast<Element*>(row), fill.width, static_cast<Element>(fill.value));
    }
  }
}

// Marks the thread while a host function runs, so that API calls in it are rejected.
class HostFunctionScope {
 public:
  HostFunctionScope() : thread_(thread_state()), outer_(thread_.running) {
    thread_.running = ThreadState::Running::HostFunction;
    gate.fetch_add(kGateHostFunction);
  }
  ~HostFunctionScope() {
    gate.fetch_sub(kGateHostFunction);
    thread_.running = outer_;
  }

 private:
  ThreadState& thread_;
  ThreadState::Running outer_;
};

class KernelScope {
 public:
  KernelScope() : thread_(thread_state()), outer_(thread_.running) { thread_.running = ThreadState::Running::Kernel; }
  ~KernelScope() { thread_.running = outer_; }

 private:
  ThreadState& thread_;
  ThreadState::Running outer_;
};

musaError_t report_illegal(const char* what, const void* pointer) {
  char where[512];
  describe_address(reinterpret_cast<uintptr_t>(pointer), where, sizeof where);
  std::fprintf(stderr, "musa-emulator: a %s on a device accessed memory at %p illegally: %s\n", what, pointer, where);
  return musaErrorIllegalAddress;
}

} // namespace

musaError_t CallbackOperation::device_lost() const { return device->lost.load(); }

void copy_box(const CopyOperation& copy) {
  const MemoryAccess access(copy.dst, copy.dst_span(), copy.src, copy.src_span());
  // memmove: overlapping ranges are undefined on a device, but must not be undefined behavior here.
  if (copy.linear()) {
    std::memmove(copy.dst, copy.src, copy.width);
    return;
  }
  for (size_t z = 0; z < copy.depth; ++z) {
    for (size_t y = 0; y < copy.height; ++y) {
      std::memmove(
          copy.dst + z * copy.dst_slice + y * copy.dst_pitch, copy.src + z * copy.src_slice + y * copy.src_pitch,
          copy.width);
    }
  }
}

void fill_box(const FillOperation& fill) {
  const MemoryAccess access(fill.dst, fill.span(), nullptr, 0);
  switch (fill.element) {
    case 1:
      if (fill.height == 1 && fill.depth == 1) {
        std::memset(fill.dst, static_cast<int>(fill.value), fill.width);
      } else {
        fill_rows<unsigned char>(fill);
      }
      break;
    case 2: fill_rows<unsigned short>(fill); break;
    case 4: fill_rows<unsigned>(fill); break;
  }
}

bool may_run(const CopyOperation& copy) {
  return may_touch(copy.dst, copy.dst_span(), /*write=*/true) && may_touch(copy.src, copy.src_span(), /*write=*/false);
}

bool may_run(const FillOperation& fill) { return may_touch(fill.dst, fill.span(), /*write=*/true); }

bool is_brief(const Operation& operation) {
  switch (operation.index()) {
    case 0: return true; // EmptyOperation
    case 3: return std::get<CopyOperation>(operation).bytes() <= kBriefBytes;
    case 4: return std::get<FillOperation>(operation).bytes() <= kBriefBytes;
    case 5: return true; // RecordOperation
    default: return false;
  }
}

musaError_t execute(Launch& launch) {
  const KernelScope scope;
  if (!engine().config.strict || launch.waits_for_others()) {
    return run_guarded(launch); // needs no access, or manages access to memory itself
  }
  const MemoryAccess access{MemoryAccess::Everything{}};
  return run_guarded(launch);
}

musaError_t execute(const Operation& operation) {
  if (const auto* copy = std::get_if<CopyOperation>(&operation)) {
    if (!may_run(*copy)) {
      return report_illegal("copy", may_touch(copy->dst, copy->dst_span(), true) ? copy->src : copy->dst);
    }
    copy_box(*copy);
  } else if (const auto* fill = std::get_if<FillOperation>(&operation)) {
    if (!may_run(*fill)) {
      return report_illegal("fill", fill->dst);
    }
    fill_box(*fill);
  } else if (const auto* kernel = std::get_if<KernelOperation>(&operation)) {
    return execute(*kernel->launch);
  } else if (const auto* host = std::get_if<HostOperation>(&operation)) {
    const HostFunctionScope scope;
    host->function(host->data);
  } else if (const auto* callback = std::get_if<CallbackOperation>(&operation)) {
    const musaError_t lost = callback->device_lost();
    const HostFunctionScope scope;
    callback->function(callback->stream, lost, callback->data);
  } else if (const auto* wait = std::get_if<InterprocessWaitOperation>(&operation)) {
    wait_interprocess(*wait->shared, wait->target);
  } else if (const auto* graph = std::get_if<GraphOperation>(&operation)) {
    return execute_graph(*graph->run, /*lost=*/false);
  }
  return musaSuccess;
}

musaError_t execute_graph(const GraphRun& run, bool lost) {
  auto record = run.records.begin();
  musaError_t status = musaSuccess;
  for (const ExecutableNode& node : *run.plan) {
    if (std::holds_alternative<RecordOperation>(node.operation)) {
      Lock lock(engine().mutex);
      finish_record(*record++); // also after a failure, because others may wait for it
    } else if (!lost && status == musaSuccess) {
      const int64_t start = tracing() ? activity_clock() : 0;
      status = execute(node.operation);
      if (start != 0) [[unlikely]] {
        note_operation(*run.stream, node.operation, run.correlation, start);
      }
    }
  }
  return status;
}

} // namespace musa_emulator
