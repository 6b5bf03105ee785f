// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// One unit of work: what a stream runs and what a graph node holds.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "driver_types.h"
#include "engine/export.h"

namespace musa_emulator {

struct HostOperation {
  musaHostFn_t function;
  void* data;
};

struct CallbackOperation {
  musaStream_t stream; // the handle that the caller passed
  musaStreamCallback_t function;
  void* data;
  struct Device* device;

  musaError_t device_lost() const;
};

// A box of bytes: `width` bytes per row, `height` rows, `depth` slices.
struct CopyOperation {
  char* dst;
  const char* src;
  size_t width, height = 1, depth = 1;
  size_t dst_pitch = 0, src_pitch = 0;
  size_t dst_slice = 0, src_slice = 0;
  musaMemcpyKind kind = musaMemcpyDefault;
  std::shared_ptr<char> staging; // owns `src` where the caller's buffer may be reused at once

  bool linear() const { return height == 1 && depth == 1; }
  size_t dst_bytes() const { return (depth - 1) * dst_slice + (height - 1) * dst_pitch + width; }
  size_t src_bytes() const { return (depth - 1) * src_slice + (height - 1) * src_pitch + width; }
};

// A box of elements of 1, 2 or 4 bytes; `width` counts elements.
struct FillOperation {
  char* dst;
  unsigned value;
  unsigned element = 1;
  size_t width, height = 1, depth = 1;
  size_t pitch = 0, slice = 0;

  size_t bytes() const { return (depth - 1) * slice + (height - 1) * pitch + width * element; }
};

struct InterprocessEvent;

struct RecordOperation {
  musaEvent_t event;
  uint64_t generation = 0; // of the event; a later record supersedes this one
  std::shared_ptr<InterprocessEvent> shared = {}; // of an event that other processes see
  uint64_t target = 0;
};

// Graphs only: a stream waits through the fences of its tasks.
struct WaitOperation {
  musaEvent_t event;
};

// Completes when another process has finished the recorded work.
struct InterprocessWaitOperation {
  std::shared_ptr<InterprocessEvent> shared;
  uint64_t target;
};

struct EmptyOperation {};

// A kernel or a task. Immutable, shared by the stream's queue and by graphs.
class MUSA_ENGINE Launch {
 public:
  virtual ~Launch() = default;
  virtual musaError_t run() = 0;
  virtual const char* name() const = 0;
  // Ends only when other processes or devices do their part. Such a launch opens the memory that it needs itself.
  virtual bool waits_for_others() const { return false; }
};

struct KernelOperation {
  std::shared_ptr<Launch> launch;
};

struct ChildGraphOperation {
  musaGraph_t graph; // owned by the node
};

// A launch of an executable graph: all of its nodes, as one unit of the stream's order.
struct GraphOperation {
  std::shared_ptr<struct GraphRun> run;
};

using Operation = std::variant<
    EmptyOperation, HostOperation, CallbackOperation, CopyOperation, FillOperation, RecordOperation, WaitOperation,
    InterprocessWaitOperation, KernelOperation, ChildGraphOperation,
    GraphOperation>;

// Runs everything but records, which the scheduler does under its lock. A failure loses the device.
musaError_t execute(const Operation& operation);
musaError_t execute(Launch& launch);
// Short enough to run while the engine lock is held, sparing a second locking round.
inline constexpr size_t kBriefBytes = 8 << 10;
bool is_brief(const Operation& operation);

void copy_box(const CopyOperation& copy);
void fill_box(const FillOperation& fill);
// Whether the mappings under the operation let a device do it now. They may change between submission and execution.
bool may_run(const CopyOperation& copy);
bool may_run(const FillOperation& fill);

} // namespace musa_emulator
