// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/allocator/MUSAAllocatorTrace.h>

#include <c10/util/ApproximateClock.h>
#include <c10/util/Exception.h>

#include <algorithm>

namespace c10::musa::MUSACachingAllocator {
namespace {

thread_local TraceScope* innermost_scope = nullptr;

struct ThreadNotes {
  std::string user_metadata;
  std::vector<std::string> compile_contexts;
};

// Null until the thread records a note. Leaked: destructors at the end of a thread also free memory, in any order.
thread_local ThreadNotes* thread_notes = nullptr;

ThreadNotes& notes_of_thread() {
  if (thread_notes == nullptr) {
    thread_notes = new ThreadNotes();
  }
  return *thread_notes;
}

uint32_t bit(TraceEntry::Action action) { return uint32_t{1} << static_cast<unsigned>(action); }

// mutex guards all members, and is a leaf. Leaked: memory is freed until the end of the process.
struct ProcessNotes {
  std::mutex mutex;
  size_t max_annotations = 0;
  std::vector<AnnotationEntry> annotations; // a ring once it is full
  size_t oldest_annotation = 0;
  std::vector<OutOfMemoryObserver> observers;
};

ProcessNotes& process_notes() {
  static auto& notes = *new ProcessNotes();
  return notes;
}

// Appends to a ring of at most limit entries.
template <typename Entry>
void append(std::vector<Entry>& ring, size_t& oldest, size_t limit, Entry entry) {
  if (ring.size() < limit) {
    ring.push_back(std::move(entry));
  } else if (limit > 0) {
    ring[oldest] = std::move(entry);
    oldest = (oldest + 1) % limit;
  }
}

template <typename Entry>
std::vector<Entry> in_order(const std::vector<Entry>& ring, size_t oldest) {
  std::vector<Entry> entries(ring.begin() + static_cast<std::ptrdiff_t>(oldest), ring.end());
  entries.insert(entries.end(), ring.begin(), ring.begin() + static_cast<std::ptrdiff_t>(oldest));
  return entries;
}

// Changes the limit of a ring: keeps the newest entries, oldest first.
template <typename Entry>
void resize(std::vector<Entry>& ring, size_t& oldest, size_t limit) {
  std::vector<Entry> entries = in_order(ring, oldest);
  if (entries.size() > limit) {
    entries.erase(entries.begin(), entries.end() - static_cast<std::ptrdiff_t>(limit));
  }
  ring = std::move(entries);
  oldest = 0;
}

ApproximateClockToUnixTimeConverter& clock() {
  static auto& converter = *new ApproximateClockToUnixTimeConverter();
  return converter;
}

} // namespace

// ---- scopes

void TraceScope::enter(const AllocatorTrace& trace, RecordContext needed) {
  Entered& entered = entered_.emplace(innermost_scope, nullptr);
  const CreateContextFn recorder = trace.recorder_.load(std::memory_order_acquire);
  if (recorder != nullptr && trace.when_.load(std::memory_order_relaxed) >= needed) {
    try {
      entered.context = recorder();
    } catch (const std::exception& error) {
      // The memory matters more than its history: the operation continues without a stack.
      TORCH_WARN_ONCE("The stack of an allocation could not be recorded: ", error.what());
    }
  }
  innermost_scope = this;
}

void TraceScope::leave() { innermost_scope = entered_->outer; }

std::shared_ptr<GatheredContext> TraceScope::context() {
  return innermost_scope == nullptr ? nullptr : innermost_scope->entered_->context;
}

// ---- the history of one device

void AllocatorTrace::configure(const HistoryOptions& options) {
  uint32_t skipped = 0;
  for (const std::string& name : options.skip_actions) {
    skipped |= bit(c10::CachingDeviceAllocator::parseTraceEntryAction(name));
  }
  skipped_ = skipped;
  recording_ = options.enabled;
  max_entries_ = options.enabled ? options.max_entries : 0;
  if (!options.enabled || options.clear) {
    entries_.clear();
    entries_.shrink_to_fit();
    oldest_ = 0;
  } else {
    resize(entries_, oldest_, max_entries_);
  }
  when_.store(options.enabled ? options.when : RecordContext::NEVER, std::memory_order_relaxed);
  recorder_.store(options.enabled ? options.recorder : nullptr, std::memory_order_release);
  update_on();
}

void AllocatorTrace::attach(AllocatorTraceTracker tracker) {
  trackers_.push_back(std::move(tracker));
  update_on();
}

// Stays on after recording while stacks of live memory are stored: they are dropped when that memory is freed.
void AllocatorTrace::update_on() {
  const bool on = recording_ || !trackers_.empty() || !contexts_.empty() || !segment_contexts_.empty();
  on_.store(on, std::memory_order_relaxed);
}

void AllocatorTrace::record(
    TraceEntry::Action action, const void* addr, size_t size, void* stream, MempoolId_t pool) noexcept {
  const bool keep = recording_ && max_entries_ > 0 && (skipped_ & bit(action)) == 0;
  if (!keep && trackers_.empty()) {
    return;
  }
  const bool with_context = when_.load(std::memory_order_relaxed) >= RecordContext::ALLOC;
  TraceEntry entry(
      action, device_, reinterpret_cast<size_t>(addr), size, stream, pool, getApproximateTime(),
      with_context ? TraceScope::context() : nullptr);
  if (thread_notes != nullptr) {
    entry.user_metadata_ = thread_notes->user_metadata;
    if (!thread_notes->compile_contexts.empty()) {
      entry.compile_context_ = thread_notes->compile_contexts.back();
    }
  }
  for (const AllocatorTraceTracker& tracker : trackers_) {
    tracker(entry);
  }
  if (keep) {
    append(entries_, oldest_, max_entries_, std::move(entry));
  }
}

void AllocatorTrace::remember(Contexts& contexts, const void* ptr) {
  if (recording_ && when_.load(std::memory_order_relaxed) >= RecordContext::STATE) {
    if (auto context = TraceScope::context()) {
      contexts[ptr] = std::move(context);
    }
  }
}

void AllocatorTrace::forget(Contexts& contexts, const void* ptr) {
  if (contexts.erase(ptr) != 0 && contexts.empty()) {
    update_on();
  }
}

void AllocatorTrace::allocated(const void* ptr, size_t size, void* stream, MempoolId_t pool) noexcept {
  remember(contexts_, ptr);
  record(TraceEntry::ALLOC, ptr, size, stream, pool);
}

void AllocatorTrace::free_completed(const void* ptr, size_t size, void* stream, MempoolId_t pool) noexcept {
  record(TraceEntry::FREE_COMPLETED, ptr, size, stream, pool);
  forget(contexts_, ptr);
}

void AllocatorTrace::segment_came(
    TraceEntry::Action action, const void* ptr, size_t size, void* stream, MempoolId_t pool) noexcept {
  remember(segment_contexts_, ptr);
  record(action, ptr, size, stream, pool);
}

void AllocatorTrace::segment_went(
    TraceEntry::Action action, const void* ptr, size_t size, void* stream, MempoolId_t pool) noexcept {
  record(action, ptr, size, stream, pool);
  forget(segment_contexts_, ptr);
}

std::shared_ptr<GatheredContext> AllocatorTrace::context_of(const void* ptr) const {
  const auto found = contexts_.find(ptr);
  return found == contexts_.end() ? nullptr : found->second;
}

std::shared_ptr<GatheredContext> AllocatorTrace::segment_context_of(const void* ptr) const {
  const auto found = segment_contexts_.find(ptr);
  return found == segment_contexts_.end() ? nullptr : found->second;
}

std::vector<TraceEntry> AllocatorTrace::entries() const { return in_order(entries_, oldest_); }

// ---- the process and its threads

namespace trace {

void set_user_metadata(const std::string& metadata) { notes_of_thread().user_metadata = metadata; }

std::string user_metadata() { return notes_of_thread().user_metadata; }

void push_compile_context(std::string context) { notes_of_thread().compile_contexts.push_back(std::move(context)); }

void pop_compile_context() {
  std::vector<std::string>& contexts = notes_of_thread().compile_contexts;
  TORCH_CHECK(!contexts.empty(), "No compile context of this thread is left to pop.");
  contexts.pop_back();
}

void configure_annotations(const HistoryOptions& options) {
  ProcessNotes& notes = process_notes();
  const std::lock_guard<std::mutex> guard(notes.mutex);
  notes.max_annotations = options.enabled ? options.max_entries : 0;
  if (options.clear) {
    notes.annotations.clear();
  }
  resize(notes.annotations, notes.oldest_annotation, notes.max_annotations);
}

void annotate(DeviceIndex device, const std::vector<std::pair<std::string, std::string>>& metadata) {
  AnnotationEntry entry(device, getApproximateTime());
  for (const auto& [name, value] : metadata) {
    entry.recordUserMetadata(name, value);
  }
  ProcessNotes& notes = process_notes();
  const std::lock_guard<std::mutex> guard(notes.mutex);
  append(notes.annotations, notes.oldest_annotation, notes.max_annotations, std::move(entry));
}

std::vector<AnnotationEntry> annotations() {
  ProcessNotes& notes = process_notes();
  const std::lock_guard<std::mutex> guard(notes.mutex);
  return in_order(notes.annotations, notes.oldest_annotation);
}

void attach_observer(OutOfMemoryObserver observer) {
  ProcessNotes& notes = process_notes();
  const std::lock_guard<std::mutex> guard(notes.mutex);
  notes.observers.push_back(std::move(observer));
}

void notify_out_of_memory(DeviceIndex device, size_t nbytes, size_t device_total, size_t device_free) {
  std::vector<OutOfMemoryObserver> observers;
  {
    ProcessNotes& notes = process_notes();
    const std::lock_guard<std::mutex> guard(notes.mutex);
    observers = notes.observers;
  }
  for (const OutOfMemoryObserver& observer : observers) {
    observer(device, nbytes, device_total, device_free);
  }
}

void start_clock() { clock(); }

void convert_times(SnapshotInfo& snapshot) {
  const auto nanoseconds = clock().makeConverter();
  const auto convert = [&](c10::CachingDeviceAllocator::trace_time_& time) {
    time.t_ = nanoseconds(time.approx_t_) / 1000;
  };
  for (auto& entries : snapshot.device_traces) {
    for (TraceEntry& entry : entries) {
      convert(entry.time_);
    }
  }
  for (AnnotationEntry& entry : snapshot.external_annotations) {
    convert(entry.time_);
  }
}

} // namespace trace

} // namespace c10::musa::MUSACachingAllocator
