// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/activity.h"

#include <pthread.h>

#include <chrono>
#include <cstring>
#include <map>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "engine/api.h"
#include "engine/kernel.h"
#include "engine/memory.h"

namespace musa_emulator {
namespace {

constexpr size_t kBacklog = 4096;      // number of records at which libmupti is notified
constexpr size_t kMostRecords = 1 << 20; // number of records after which further ones are dropped

struct Collection {
  std::mutex mutex; // guards the fields below
  std::vector<Activity> records;
  uint64_t dropped = 0;
  std::unordered_set<std::string> names; // of kernels; copied because a record outlives its launch
};

// Never destroyed: streams may still finish work at process exit.
Collection& collection() {
  static Collection* instance = new Collection;
  return *instance;
}

std::atomic<void (*)()> backlog_handler{nullptr};
std::atomic<CallObserver> call_observer{nullptr};
std::atomic<uint32_t> next_correlation{1};

struct ExternalIds {
  std::map<uint32_t, std::vector<uint64_t>> by_kind;
};
thread_local ExternalIds external_ids;
thread_local bool untraced = false;

void keep(const Activity& activity) {
  Collection& all = collection();
  std::lock_guard lock(all.mutex);
  if (all.records.size() < kMostRecords) {
    all.records.push_back(activity);
  } else {
    ++all.dropped;
  }
}

const char* interned(const char* name) {
  Collection& all = collection();
  std::lock_guard lock(all.mutex);
  return all.names.emplace(name).first->c_str();
}

bool wants(uint32_t kind) { return (traced_kinds.load(std::memory_order_relaxed) & kind) != 0; }

Activity operation_record(uint32_t kind, const Stream& stream, uint32_t correlation, int64_t start) {
  Activity activity;
  activity.kind = kind;
  activity.correlation = correlation;
  activity.start = start;
  activity.end = activity_clock();
  activity.device = stream.device->ordinal;
  activity.stream = stream.id;
  return activity;
}

void describe_memory(const void* pointer, musaMemoryType* type, int* device) {
  const PointerInfo info = classify(pointer);
  *type = info.type;
  *device = info.type == musaMemoryTypeDevice || info.type == musaMemoryTypeManaged ? info.device : -1;
}

} // namespace

constinit std::atomic<uint32_t> traced_kinds{0};

void set_traced_kinds(uint32_t kinds) {
  traced_kinds.store(kinds, std::memory_order_relaxed);
  if (kinds != 0) {
    gate.fetch_or(kGateTraced);
  } else {
    gate.fetch_and(~uint32_t{kGateTraced});
  }
}

std::vector<Activity> take_activities() {
  std::vector<Activity> taken;
  Collection& all = collection();
  std::lock_guard lock(all.mutex);
  taken.swap(all.records);
  return taken;
}

uint64_t take_dropped() {
  Collection& all = collection();
  std::lock_guard lock(all.mutex);
  return std::exchange(all.dropped, 0);
}

void set_backlog_handler(void (*handler)()) { backlog_handler.store(handler); }

void push_external(uint32_t kind, uint64_t id) { external_ids.by_kind[kind].push_back(id); }

bool pop_external(uint32_t kind, uint64_t* id) {
  const auto found = external_ids.by_kind.find(kind);
  if (found == external_ids.by_kind.end() || found->second.empty()) {
    return false;
  }
  if (id != nullptr) {
    *id = found->second.back();
  }
  found->second.pop_back();
  return true;
}

void set_call_observer(CallObserver observer) { call_observer.store(observer); }

UntracedScope::UntracedScope() : outer_(untraced) { untraced = true; }

UntracedScope::~UntracedScope() { untraced = outer_; }

bool is_driver_call(const char* name) { return std::strncmp(name, "musa", 4) != 0; }

int64_t activity_clock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void begin_call(const ApiEntry& entry, CallTrace* trace) {
  if (untraced || (gate.load(std::memory_order_acquire) & (kGateForked | kGateUnloading)) != 0) {
    return;
  }
  ThreadState& thread = thread_state();
  trace->outer = thread.correlation;
  trace->correlation = next_correlation.fetch_add(1, std::memory_order_relaxed);
  thread.correlation = trace->correlation;
  if (const CallObserver observer = call_observer.load()) {
    const UntracedScope scope;
    observer(entry.name, /*ended=*/false, trace->correlation, musaSuccess);
  }
  trace->start = activity_clock();
}

void end_call(const ApiEntry& entry, const CallTrace& trace, musaError_t status) {
  Activity call;
  call.end = activity_clock();
  thread_state().correlation = trace.outer;
  // A task replaces the kernel that a library of the SDK would launch, so it is reported as a launch.
  const char* name = std::strcmp(entry.name, "musaEmulatorLaunchTask") == 0 ? "musaLaunchKernel" : entry.name;
  if (const CallObserver observer = call_observer.load()) {
    const UntracedScope scope;
    observer(name, /*ended=*/true, trace.correlation, status);
  }
  call.kind = is_driver_call(name) ? kDriverCalls : kRuntimeCalls;
  call.correlation = trace.correlation;
  call.start = trace.start;
  call.name = name;
  call.thread = static_cast<uint32_t>(pthread_self());
  call.status = status;
  if (wants(kExternalCorrelations)) {
    for (const auto& [kind, ids] : external_ids.by_kind) {
      if (!ids.empty()) {
        Activity external;
        external.kind = kExternalCorrelations;
        external.correlation = trace.correlation;
        external.external_kind = kind;
        external.external_id = ids.back();
        keep(external);
      }
    }
  }
  if (wants(call.kind)) {
    keep(call);
  }
  void (*handler)() = backlog_handler.load();
  if (handler != nullptr && trace.outer == 0) {
    bool full = false;
    {
      Collection& all = collection();
      std::lock_guard lock(all.mutex);
      full = all.records.size() >= kBacklog;
    }
    if (full) {
      const UntracedScope scope;
      handler();
    }
  }
}

void note_copy(const Stream& stream, const CopyOperation& copy, uint32_t correlation, int64_t start) {
  if (!wants(kCopies)) {
    return;
  }
  Activity activity = operation_record(kCopies, stream, correlation, start);
  activity.bytes = copy.width * copy.height * copy.depth;
  describe_memory(copy.src, &activity.source, &activity.source_device);
  describe_memory(copy.dst, &activity.target, &activity.target_device);
  activity.waits = copy.staging == nullptr &&
      (activity.source == musaMemoryTypeUnregistered || activity.target == musaMemoryTypeUnregistered);
  keep(activity);
}

void note_fill(const Stream& stream, const FillOperation& fill, uint32_t correlation, int64_t start) {
  if (!wants(kFills)) {
    return;
  }
  Activity activity = operation_record(kFills, stream, correlation, start);
  activity.bytes = fill.width * fill.element * fill.height * fill.depth;
  activity.value = fill.value;
  describe_memory(fill.dst, &activity.target, &activity.target_device);
  keep(activity);
}

void note_operation(const Stream& stream, const Operation& operation, uint32_t correlation, int64_t start) {
  if (const auto* copy = std::get_if<CopyOperation>(&operation)) {
    note_copy(stream, *copy, correlation, start);
  } else if (const auto* fill = std::get_if<FillOperation>(&operation)) {
    note_fill(stream, *fill, correlation, start);
  } else if (const auto* kernel = std::get_if<KernelOperation>(&operation); kernel != nullptr && wants(kKernels)) {
    Activity activity = operation_record(kKernels, stream, correlation, start);
    activity.name = interned(kernel->launch->name());
    activity.grid = activity.block = {1, 1, 1}; // a task, which has no grid
    if (const auto* launch = dynamic_cast<const KernelLaunch*>(kernel->launch.get())) {
      activity.grid = launch->grid();
      activity.block = launch->block();
      activity.static_shared = launch->kernel().static_shared;
      activity.dynamic_shared = launch->shared_bytes();
    }
    keep(activity);
  }
}

void SynchronizationScope::note() const {
  if (!wants(kSynchronizations)) {
    return;
  }
  Activity activity;
  activity.kind = kSynchronizations;
  activity.correlation = current_correlation();
  activity.start = start_;
  activity.end = activity_clock();
  activity.device = device_.ordinal;
  activity.stream = stream_ != nullptr ? stream_->id : 0;
  activity.synchronization = type_;
  keep(activity);
}

} // namespace musa_emulator
