// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Activities for profilers: calls, the work that they enqueue, and waits. libmupti delivers them.
//
// Collected only while a kind is enabled; otherwise the scheduler and the entry points only check a flag. The lock of
// the collection is acquired last, and no function is called while it is held.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "engine/operation.h"
#include "engine/state.h"
#include "engine/thread_state.h"

namespace musa_emulator {

struct ApiEntry;

enum ActivityKinds : uint32_t {
  kRuntimeCalls = 1,
  kDriverCalls = 2,
  kKernels = 4,
  kCopies = 8,
  kFills = 16,
  kSynchronizations = 32,
  kExternalCorrelations = 64,
  kCallObserver = 128, // set with set_call_observer()
};

enum class SynchronizationType : uint8_t { Event, StreamWaitEvent, Stream, Device };

// One activity. `kind`, one of ActivityKinds, determines which fields are valid.
struct Activity {
  uint32_t kind = 0;
  uint32_t correlation = 0; // id of the call, or of the call that enqueued the work
  int64_t start = 0;        // nanoseconds since the Unix epoch
  int64_t end = 0;
  const char* name = nullptr; // name of the call or kernel; never freed
  int device = 0;
  uint64_t stream = 0; // 0 if all streams of a device are waited for
  // Calls.
  uint32_t thread = 0; // the low bits of pthread_self(), as in CUPTI
  musaError_t status = musaSuccess;
  // Copies and fills. Host memory has device -1.
  uint64_t bytes = 0;
  uint32_t value = 0;
  musaMemoryType source = musaMemoryTypeUnregistered;
  musaMemoryType target = musaMemoryTypeUnregistered;
  int source_device = -1;
  int target_device = -1;
  bool waits = false; // whether the call blocks until the copy is done
  // Kernels.
  dim3 grid{};
  dim3 block{};
  size_t static_shared = 0;
  size_t dynamic_shared = 0;
  // Synchronisations.
  SynchronizationType synchronization = SynchronizationType::Stream;
  // External correlations.
  uint32_t external_kind = 0;
  uint64_t external_id = 0;
};

MUSA_ENGINE extern std::atomic<uint32_t> traced_kinds;

inline bool tracing() { return traced_kinds.load(std::memory_order_relaxed) != 0; }

// ---- interface for libmupti
// --------------------------------------------------------------------------------------------
MUSA_ENGINE void set_traced_kinds(uint32_t kinds);
// Returns and removes all collected activities.
MUSA_ENGINE std::vector<Activity> take_activities();
// Number of activities dropped since the last call because the collection was full.
MUSA_ENGINE uint64_t take_dropped();
// The handler is called at the end of a call, without a lock, when many activities are collected.
MUSA_ENGINE void set_backlog_handler(void (*handler)());

MUSA_ENGINE void push_external(uint32_t kind, uint64_t id);
// Returns false if this thread's stack of this kind is empty.
MUSA_ENGINE bool pop_external(uint32_t kind, uint64_t* id);

// Called at the start and end of each call, without a lock, on the calling thread.
using CallObserver = void (*)(const char* name, bool ended, uint32_t correlation, musaError_t status);
MUSA_ENGINE void set_call_observer(CallObserver observer);

// While in scope, calls of this thread are not recorded. Used for the profiler's own calls.
class MUSA_ENGINE UntracedScope {
 public:
  UntracedScope();
  ~UntracedScope();

 private:
  bool outer_;
};

MUSA_ENGINE bool is_driver_call(const char* name);

// ---- interface for the engine
// ------------------------------------------------------------------------------------------
MUSA_ENGINE int64_t activity_clock();

// Records an operation that started at `start` and has just finished. Operations without a CUPTI record are ignored.
MUSA_ENGINE void note_copy(const Stream& stream, const CopyOperation& copy, uint32_t correlation, int64_t start);
MUSA_ENGINE void note_fill(const Stream& stream, const FillOperation& fill, uint32_t correlation, int64_t start);
void note_operation(const Stream& stream, const Operation& operation, uint32_t correlation, int64_t start);

// The correlation id of this thread's current call; 0 outside a call or if nothing is traced.
inline uint32_t current_correlation() { return tracing() ? thread_state().correlation : 0; }

// Records a wait that lasts as long as the object.
class SynchronizationScope {
 public:
  SynchronizationScope(SynchronizationType type, const Device& device, const Stream* stream)
      : start_(tracing() ? activity_clock() : 0), type_(type), device_(device), stream_(stream) {}
  ~SynchronizationScope() {
    if (start_ != 0) [[unlikely]] {
      note();
    }
  }
  SynchronizationScope(const SynchronizationScope&) = delete;
  SynchronizationScope& operator=(const SynchronizationScope&) = delete;

 private:
  void note() const;

  int64_t start_;
  SynchronizationType type_;
  const Device& device_;
  const Stream* stream_;
};

} // namespace musa_emulator
