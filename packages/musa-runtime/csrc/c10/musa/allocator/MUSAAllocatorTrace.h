// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/musa/MUSAMacros.h>
#include <c10/util/flat_hash_map.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// The history of device memory, with the program's stacks: the data behind torch.musa.memory._snapshot().
namespace c10::musa::MUSACachingAllocator {

using c10::CachingDeviceAllocator::AllocatorTraceTracker;
using c10::CachingDeviceAllocator::AnnotationEntry;
using c10::CachingDeviceAllocator::CreateContextFn;
using c10::CachingDeviceAllocator::RecordContext;
using c10::CachingDeviceAllocator::SegmentInfo;
using c10::CachingDeviceAllocator::TraceEntry;

// Called without a lock before an allocation fails, with the device, the bytes requested, and the total and free bytes of
// the device.
using OutOfMemoryObserver =
    std::function<void(int64_t device, size_t allocated, size_t device_total, size_t device_free)>;

struct SnapshotInfo {
  std::vector<SegmentInfo> segments; // of every device, by address
  std::vector<std::vector<TraceEntry>> device_traces; // by device, oldest entry first; times in microseconds
  std::vector<AnnotationEntry> external_annotations; // times in microseconds
};

struct HistoryOptions {
  bool enabled = false;
  CreateContextFn recorder = nullptr;
  size_t max_entries = 1; // the newest are kept; 0 keeps none
  RecordContext when = RecordContext::NEVER;
  bool clear = false; // drop the entries recorded so far; turning recording off does so too
  std::vector<std::string> skip_actions; // named as in parseTraceEntryAction
};

// The history of one device.
//
// Locking
//   on_, when_, recorder_  atomic: read before the allocator's lock is taken
//   other members          guarded by the mutex of the DeviceCachingAllocator that owns the trace
//   The GIL is taken before that mutex, and gathering a Python stack takes the GIL. So a TraceScope gathers the stack
//   first, then the lock is taken, and entries recorded under the lock use the stack of the innermost scope of their
//   thread.
class AllocatorTrace {
 public:
  explicit AllocatorTrace(DeviceIndex device) : device_(device) {}

  // Whether there is anything to record or to drop: the only branch that history costs while it is off.
  bool on() const { return on_.load(std::memory_order_relaxed); }

  void configure(const HistoryOptions& options);
  // Called for each entry under the allocator's lock: must not take the GIL, allocate device memory or throw.
  void attach(AllocatorTraceTracker tracker);
  bool recording() const { return recording_; }

  void record(TraceEntry::Action action, const void* addr, size_t size, void* stream, MempoolId_t pool) noexcept;
  // Like record; also stores or drops the stack of the allocation.
  void allocated(const void* ptr, size_t size, void* stream, MempoolId_t pool) noexcept;
  void free_completed(const void* ptr, size_t size, void* stream, MempoolId_t pool) noexcept;
  // For a segment (SEGMENT_ALLOC, SEGMENT_FREE) or pages of an expandable one (SEGMENT_MAP, SEGMENT_UNMAP).
  void segment_came(TraceEntry::Action action, const void* ptr, size_t size, void* stream, MempoolId_t pool) noexcept;
  void segment_went(TraceEntry::Action action, const void* ptr, size_t size, void* stream, MempoolId_t pool) noexcept;

  // The stack that allocated a live allocation or a segment; null if none was recorded.
  std::shared_ptr<GatheredContext> context_of(const void* ptr) const;
  std::shared_ptr<GatheredContext> segment_context_of(const void* ptr) const;

  // Oldest first.
  std::vector<TraceEntry> entries() const;

 private:
  friend class TraceScope;
  using Contexts = ska::flat_hash_map<const void*, std::shared_ptr<GatheredContext>>;

  void remember(Contexts& contexts, const void* ptr);
  void forget(Contexts& contexts, const void* ptr);
  void update_on();

  const DeviceIndex device_;
  std::atomic<bool> on_{false};
  std::atomic<RecordContext> when_{RecordContext::NEVER};
  std::atomic<CreateContextFn> recorder_{nullptr};

  bool recording_ = false;
  size_t max_entries_ = 0;
  uint32_t skipped_ = 0; // a bit for each action
  std::vector<TraceEntry> entries_; // a ring once it is full
  size_t oldest_ = 0;
  std::vector<AllocatorTraceTracker> trackers_;
  // By address, outside of the blocks: blocks split and merge all the time, and history is rarely on.
  Contexts contexts_;
  Contexts segment_contexts_;
};

// Placed at the entry of an allocator operation, before its lock: gathers the stack if the trace needs one for this kind of
// operation. Scopes of a thread nest, since queued work that runs inside may free memory itself.
class TraceScope {
 public:
  TraceScope(const AllocatorTrace& trace, RecordContext needed) {
    if (C10_UNLIKELY(trace.on())) {
      enter(trace, needed);
    }
  }
  ~TraceScope() {
    if (C10_UNLIKELY(entered_.has_value())) {
      leave();
    }
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

  // The stack gathered by the innermost scope of this thread; may be null.
  static std::shared_ptr<GatheredContext> context();

 private:
  void enter(const AllocatorTrace& trace, RecordContext needed);
  void leave();

  struct Entered {
    TraceScope* outer;
    std::shared_ptr<GatheredContext> context;
  };
  std::optional<Entered> entered_;
};

// State of the process or of a thread, not of a device.
namespace trace {

void set_user_metadata(const std::string& metadata); // of this thread
std::string user_metadata();
void push_compile_context(std::string context); // of this thread
void pop_compile_context();

void configure_annotations(const HistoryOptions& options);
void annotate(DeviceIndex device, const std::vector<std::pair<std::string, std::string>>& metadata);
std::vector<AnnotationEntry> annotations();

void attach_observer(OutOfMemoryObserver observer);
void notify_out_of_memory(DeviceIndex device, size_t nbytes, size_t device_total, size_t device_free);

// Replaces the clock's ticks by microseconds since 1970. The clock is calibrated between start_clock and this call.
void start_clock();
void convert_times(SnapshotInfo& snapshot);

} // namespace trace

} // namespace c10::musa::MUSACachingAllocator
