// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors

// Uses of the allocator's history in C++, for test_allocator_trackers.py.

#include <c10/musa/MUSACachingAllocator.h>

#include <array>
#include <atomic>
#include <exception>

namespace allocator = c10::musa::MUSACachingAllocator;
using c10::CachingDeviceAllocator::RecordContext;
using c10::CachingDeviceAllocator::TraceEntry;

namespace {

std::array<std::atomic<int>, 16> counts;
std::atomic<int> contexts{0};

struct Marker final : c10::GatheredContext {};

std::shared_ptr<c10::GatheredContext> mark() {
  ++contexts;
  return std::make_shared<Marker>();
}

} // namespace

extern "C" {

void attach() {
  allocator::attachAllocatorTraceTracker([](const TraceEntry& entry) { ++counts.at(entry.action_); });
}

int count(const char* action) { return counts.at(c10::CachingDeviceAllocator::parseTraceEntryAction(action)); }

// Records one allocation and its free with a custom context recorder. Returns the number of device 0's entries
// that have the recorder's mark, or -1 if a check of the recording fails.
int record_one() {
  const int before = contexts;
  allocator::recordHistory(true, &mark, 100, RecordContext::ALL, true, {"snapshot"}, 0);
  void* const memory = allocator::raw_alloc(1000);
  const bool kept = dynamic_cast<Marker*>(allocator::getContextForPointer(memory).get()) != nullptr;
  allocator::raw_delete(memory);
  int marked = 0;
  const allocator::SnapshotInfo snapshot = allocator::snapshot();
  for (const TraceEntry& entry : snapshot.device_traces.at(0)) {
    marked += dynamic_cast<Marker*>(entry.context_.get()) != nullptr ? 1 : 0;
  }
  const bool recording = allocator::isHistoryEnabled();
  allocator::recordHistory(false, nullptr, 0, RecordContext::NEVER, false, {});
  return kept && recording && !allocator::isHistoryEnabled() && contexts == before + 2 ? marked : -1;
}

} // extern "C"
