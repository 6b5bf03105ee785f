// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// What a profiler learns: calls, the work that they put on streams, and waits. libmupti hands it out.
//
// Collected while a kind is asked for, and else not: the scheduler and the entry points then take one branch each. The
// lock of the collection is taken last, and nothing is called under it.
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

// One record; which fields count depends on `kind`, one of ActivityKinds.
struct Activity {
  uint32_t kind = 0;
  uint32_t correlation = 0; // of the call, or of the call that put the work on the stream
  int64_t start = 0;        // nanoseconds since the Unix epoch
  int64_t end = 0;
  const char* name = nullptr; // of the call or the kernel; never freed
  int device = 0;
  uint64_t stream = 0; // 0 for a wait for all of a device's streams
  // Calls.
  uint32_t thread = 0; // the low bits of pthread_self(), as CUPTI has it
  musaError_t status = musaSuccess;
  // Copies and fills. Host memory has device -1.
  uint64_t bytes = 0;
  uint32_t value = 0;
  musaMemoryType source = musaMemoryTypeUnregistered;
  musaMemoryType target = musaMemoryTypeUnregistered;
  int source_device = -1;
  int target_device = -1;
  bool waits = false; // whether the call that made the copy returns after it
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

inline bool tracing() {
  return traced_kinds.load(std::memory_order_relaxed) != 0;
}

// ---- libmupti's side --------------------------------------------------------------------------------------------------
MUSA_ENGINE void set_traced_kinds(uint32_t kinds);
// Everything collected since the last call.
MUSA_ENGINE std::vector<Activity> take_activities();
// Records lost because nobody took them in time, since the last call.
MUSA_ENGINE uint64_t take_dropped();
// Called at the end of a call, without a lock, when many records wait.
MUSA_ENGINE void set_backlog_handler(void (*handler)());

MUSA_ENGINE void push_external(uint32_t kind, uint64_t id);
// False when this thread has pushed none of this kind.
MUSA_ENGINE bool pop_external(uint32_t kind, uint64_t* id);

// Told of each call's beginning and end, without a lock, on the calling thread.
using CallObserver = void (*)(const char* name, bool ended, uint32_t correlation, musaError_t status);
MUSA_ENGINE void set_call_observer(CallObserver observer);

// Calls that this thread makes while it lives are not recorded: those of the profiler itself.
class MUSA_ENGINE UntracedScope {
 public:
  UntracedScope();
  ~UntracedScope();

 private:
  bool outer_;
};

MUSA_ENGINE bool is_driver_call(const char* name);

// ---- the engine's side ------------------------------------------------------------------------------------------------
MUSA_ENGINE int64_t activity_clock();

// Records the operation, begun at `start` and ended now. Without a record for operations that CUPTI has none for.
MUSA_ENGINE void note_copy(const Stream& stream, const CopyOperation& copy, uint32_t correlation, int64_t start);
MUSA_ENGINE void note_fill(const Stream& stream, const FillOperation& fill, uint32_t correlation, int64_t start);
void note_operation(const Stream& stream, const Operation& operation, uint32_t correlation, int64_t start);

// The correlation id of the call that this thread is in; 0 outside one and while nothing is traced.
inline uint32_t current_correlation() {
  return tracing() ? thread_state().correlation : 0;
}

// Around a wait.
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
