// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/allocator/MUSADeviceCachingAllocator.h>

#include <algorithm>

// Statistics and snapshots of the cache of one device.
namespace c10::musa::MUSACachingAllocator {

using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;

DeviceStats DeviceCachingAllocator::stats() {
  const Lock lock(mutex_);
  DeviceStats result = cache_.stats.read();
  result.max_split_size = static_cast<int64_t>(std::min<size_t>(Config::max_split_size(), INT64_MAX));
  return result;
}

void DeviceCachingAllocator::reset_peak_stats() {
  const Lock lock(mutex_);
  cache_.stats.reset_peaks();
}

void DeviceCachingAllocator::reset_accumulated_stats() {
  const Lock lock(mutex_);
  cache_.stats.reset_accumulated();
}

bool DeviceCachingAllocator::untouched() {
  const Lock lock(mutex_);
  return cache_.blocks.empty() &&
      cache_.stats.read().reserved_bytes[static_cast<size_t>(StatType::AGGREGATE)].allocated == 0;
}

void DeviceCachingAllocator::set_memory_fraction(double fraction) {
  const Lock lock(mutex_);
  cache_.limit.set_fraction(fraction);
}

double DeviceCachingAllocator::memory_fraction() {
  const Lock lock(mutex_);
  return cache_.limit.fraction();
}

std::pair<size_t, size_t> DeviceCachingAllocator::cache_info() {
  const Lock lock(mutex_);
  return {cache_.stats.reserved_bytes() - cache_.stats.active_bytes(), cache_.pools.largest_free_block()};
}

bool DeviceCachingAllocator::owns(const void* ptr) {
  const Lock lock(mutex_);
  return cache_.blocks.find_allocated(ptr) != nullptr;
}

void* DeviceCachingAllocator::base_allocation(void* ptr, size_t* size) {
  const Lock lock(mutex_);
  const Block* first = cache_.blocks.find_allocated(ptr);
  if (first == nullptr) {
    return nullptr;
  }
  TORCH_CHECK(
      first->expandable == nullptr, "Device memory at ", ptr, " on musa:", static_cast<int>(cache_.device),
      " is in an expandable segment, which cannot be shared with another process.\n",
      "Fix: set expandable_segments:False (PYTORCH_ALLOC_CONF, or torch.musa.memory._set_allocator_settings) before the "
      "tensors to be shared are made; or turn it off now and send tensor.clone(), after torch.musa.empty_cache().");
  while (first->prev != nullptr) {
    first = first->prev;
  }
  if (size != nullptr) {
    *size = 0;
    for (const Block* block = first; block != nullptr; block = block->next) {
      *size += block->size;
    }
  }
  return first->ptr;
}

void DeviceCachingAllocator::record_history(const HistoryOptions& options) {
  const Lock lock(mutex_);
  cache_.trace.configure(options);
}

bool DeviceCachingAllocator::recording_history() {
  const Lock lock(mutex_);
  return cache_.trace.recording();
}

void DeviceCachingAllocator::attach_trace_tracker(AllocatorTraceTracker tracker) {
  const Lock lock(mutex_);
  cache_.trace.attach(std::move(tracker));
}

std::shared_ptr<GatheredContext> DeviceCachingAllocator::context_of(const void* ptr) {
  const Lock lock(mutex_);
  return cache_.trace.context_of(ptr);
}

std::pair<std::vector<SegmentInfo>, std::vector<TraceEntry>> DeviceCachingAllocator::snapshot(
    MempoolId_t id, bool include_trace) {
  const Lock lock(mutex_);
  const bool every = id == MempoolId_t{0, 0};
  std::vector<SegmentInfo> segments;
  cache_.blocks.for_each([&](const Block* first) {
    if (first->prev != nullptr || (!every && first->home->pool.id != id)) {
      return;
    }
    SegmentInfo& segment = segments.emplace_back();
    segment.device = cache_.device;
    segment.address = reinterpret_cast<size_t>(first->ptr);
    segment.stream = first->home->stream;
    segment.is_large = !first->home->pool.is_small;
    segment.is_expandable = first->expandable != nullptr;
    segment.owner_private_pool_id = first->home->pool.id;
    segment.context_when_allocated = cache_.trace.segment_context_of(first->ptr);
    for (const Block* block = first; block != nullptr; block = block->next) {
      auto& info = segment.blocks.emplace_back();
      info.size = block->size;
      info.requested_size = block->requested;
      info.allocated = block->allocated;
      info.active = !block->available();
      if (info.active) {
        info.context_when_allocated = cache_.trace.context_of(block->ptr);
      }
      segment.total_size += block->size;
      segment.allocated_size += info.allocated ? block->size : 0;
      segment.active_size += info.active ? block->size : 0;
      segment.requested_size += info.active ? block->requested : 0;
    }
  });
  std::sort(segments.begin(), segments.end(), [](const SegmentInfo& a, const SegmentInfo& b) {
    return a.address < b.address;
  });
  std::vector<TraceEntry> trace;
  if (include_trace) {
    // Marks the time of this snapshot in the history.
    cache_.trace.record(TraceEntry::SNAPSHOT, nullptr, cache_.stats.active_bytes(), nullptr, id);
    trace = cache_.trace.entries();
  }
  return {std::move(segments), std::move(trace)};
}

} // namespace c10::musa::MUSACachingAllocator
