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

// What happened to device memory, and where in the program: the history behind torch.musa.memory._snapshot().
namespace c10::musa::MUSACachingAllocator {

using c10::CachingDeviceAllocator::AllocatorTraceTracker;
using c10::CachingDeviceAllocator::AnnotationEntry;
using c10::CachingDeviceAllocator::CreateContextFn;
using c10::CachingDeviceAllocator::RecordContext;
using c10::CachingDeviceAllocator::SegmentInfo;
using c10::CachingDeviceAllocator::TraceEntry;

// Called, without a lock, before an allocation fails: the device, bytes asked for, bytes of the device in all, and free.
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
  bool clear = false; // drop what was recorded so far; turning recording off does so too
  std::vector<std::string> skip_actions; // by the names of parseTraceEntryAction
};

// The history of one device.
//
// Locking
//   on_, when_, recorder_  atomic: read before the allocator's lock is taken
//   all else               guarded by the mutex of the DeviceCachingAllocator that owns the trace
//   The GIL comes before that mutex, and gathering a Python stack takes it: so a TraceScope gathers first, the lock
//   follows, and what is recorded under the lock takes the stack from the innermost scope of its thread.
class AllocatorTrace {
 public:
  explicit AllocatorTrace(DeviceIndex device) : device_(device) {}

  // Whether there is anything to record or to forget: the one branch that history costs while it is off.
  bool on() const {
    return on_.load(std::memory_order_relaxed);
  }

  void configure(const HistoryOptions& options);
  // Called for each entry under the allocator's lock: must not take the GIL, allocate device memory or throw.
  void attach(AllocatorTraceTracker tracker);
  bool recording() const {
    return recording_;
  }

  void record(TraceEntry::Action action, const void* addr, size_t size, void* stream, MempoolId_t pool) noexcept;
  // As record; remembers or forgets where the memory was allocated too.
  void allocated(const void* ptr, size_t size, void* stream, MempoolId_t pool) noexcept;
  void free_completed(const void* ptr, size_t size, void* stream, MempoolId_t pool) noexcept;
  // A segment, or pages of an expandable one: SEGMENT_ALLOC or SEGMENT_MAP, SEGMENT_FREE or SEGMENT_UNMAP.
  void segment_came(
      TraceEntry::Action action, const void* ptr, size_t size, void* stream, MempoolId_t pool) noexcept;
  void segment_went(
      TraceEntry::Action action, const void* ptr, size_t size, void* stream, MempoolId_t pool) noexcept;

  // Where a live allocation, or a segment, was allocated; null when that was not recorded.
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
  // By address, beside the blocks and not in them: blocks split and merge all the time, and history is rarely on.
  Contexts contexts_;
  Contexts segment_contexts_;
};

// Stands at the entry of an operation of the allocator, before its lock: gathers the stack if the trace wants one for
// operations of this kind. Scopes of a thread nest, since queued work that runs inside may free memory itself.
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

  // The stack that the innermost scope of this thread gathered; may be null.
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

// What belongs to the process or to a thread and not to a device.
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
