// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A unit of work, which a stream runs and a graph node contains.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "driver_types.h"
#include "engine/checked_size.h"
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
  std::shared_ptr<char> staging; // owns `src` if the caller may reuse its buffer immediately

  bool linear() const { return height == 1 && depth == 1; }
  size_t bytes() const { return box_bytes(width, height, depth); }
  // From the first to the last byte.
  size_t dst_span() const { return box_span(depth, dst_slice, height, dst_pitch, width); }
  size_t src_span() const { return box_span(depth, src_slice, height, src_pitch, width); }
};

// A box of elements of 1, 2 or 4 bytes; `width` counts elements.
struct FillOperation {
  char* dst;
  unsigned value;
  unsigned element = 1;
  size_t width, height = 1, depth = 1;
  size_t pitch = 0, slice = 0;

  size_t row() const { return checked_product(width, element); }
  size_t bytes() const { return box_bytes(row(), height, depth); }
  // From the first to the last byte.
  size_t span() const { return box_span(depth, slice, height, pitch, row()); }
};

struct InterprocessEvent;

struct RecordOperation {
  musaEvent_t event;
  uint64_t generation = 0; // of the event; a later record supersedes this one
  std::shared_ptr<InterprocessEvent> shared = {}; // set if other processes share the event
  uint64_t target = 0;
};

// Only in graphs: a stream waits through the fences of its tasks.
struct WaitOperation {
  musaEvent_t event;
};

// Completes when another process has finished the recorded work.
struct InterprocessWaitOperation {
  std::shared_ptr<InterprocessEvent> shared;
  uint64_t target;
};

struct EmptyOperation {};

// A kernel or a task. Immutable; shared by the stream's queue and by graphs.
class MUSA_ENGINE Launch {
 public:
  virtual ~Launch() = default;
  virtual musaError_t run() = 0;
  virtual const char* name() const = 0;
  // Whether the launch depends on other processes or devices. Such a launch manages access to memory itself.
  virtual bool waits_for_others() const { return false; }
};

struct KernelOperation {
  std::shared_ptr<Launch> launch;
};

struct ChildGraphOperation {
  musaGraph_t graph; // owned by the node
};

// A launch of an executable graph, whose nodes are one operation of the stream.
struct GraphOperation {
  std::shared_ptr<struct GraphRun> run;
};

using Operation = std::variant<
    EmptyOperation, HostOperation, CallbackOperation, CopyOperation, FillOperation, RecordOperation, WaitOperation,
    InterprocessWaitOperation, KernelOperation, ChildGraphOperation, GraphOperation>;

} // namespace musa_emulator
