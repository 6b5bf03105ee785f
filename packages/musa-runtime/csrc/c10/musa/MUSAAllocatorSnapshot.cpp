// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSADeviceCachingAllocator.h>

#include <algorithm>

// Statistics and snapshots of the cache of one device.
namespace c10::musa::MUSACachingAllocator {

using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;

DeviceStats DeviceCachingAllocator::stats() {
  const Lock lock(mutex_);
  DeviceStats result = stats_.read();
  result.max_split_size = static_cast<int64_t>(std::min<size_t>(Config::max_split_size(), INT64_MAX));
  return result;
}

void DeviceCachingAllocator::reset_peak_stats() {
  const Lock lock(mutex_);
  stats_.reset_peaks();
}

void DeviceCachingAllocator::reset_accumulated_stats() {
  const Lock lock(mutex_);
  stats_.reset_accumulated([this](MempoolId_t id) { return pools_.count(id) != 0; });
}

bool DeviceCachingAllocator::untouched() {
  const Lock lock(mutex_);
  return blocks_.empty() && stats_.read().reserved_bytes[static_cast<size_t>(StatType::AGGREGATE)].allocated == 0;
}

void DeviceCachingAllocator::set_memory_fraction(double fraction) {
  const Lock lock(mutex_);
  fraction_ = fraction;
}

double DeviceCachingAllocator::memory_fraction() {
  const Lock lock(mutex_);
  return fraction_;
}

size_t DeviceCachingAllocator::largest_cached() const {
  size_t largest = 0;
  for (const auto& pool : pools_) {
    for (const BlockPool* part : {&pool.second->small, &pool.second->large}) {
      for (const auto& home : part->streams) {
        largest = std::max(largest, home->free.largest());
      }
    }
  }
  return largest;
}

std::pair<size_t, size_t> DeviceCachingAllocator::cache_info() {
  const Lock lock(mutex_);
  return {stats_.reserved_bytes() - stats_.active_bytes(), largest_cached()};
}

bool DeviceCachingAllocator::owns(const void* ptr) {
  const Lock lock(mutex_);
  const auto found = blocks_.find(ptr);
  return found != blocks_.end() && found->second->allocated;
}

void* DeviceCachingAllocator::base_allocation(void* ptr, size_t* size) {
  const Lock lock(mutex_);
  const auto found = blocks_.find(ptr);
  if (found == blocks_.end() || !found->second->allocated) {
    return nullptr;
  }
  TORCH_CHECK(
      found->second->expandable == nullptr,
      "Device memory at ", ptr, " on musa:", static_cast<int>(device_),
      " lies in an expandable segment, which cannot be shared with another process.\n",
      "Cure: set expandable_segments:False (PYTORCH_ALLOC_CONF, or torch.musa.memory._set_allocator_settings) before the "
      "tensors to be shared are made; or turn it off now and send tensor.clone(), after torch.musa.empty_cache().");
  const Block* first = found->second;
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
  trace_.configure(options);
}

bool DeviceCachingAllocator::recording_history() {
  const Lock lock(mutex_);
  return trace_.recording();
}

void DeviceCachingAllocator::attach_trace_tracker(AllocatorTraceTracker tracker) {
  const Lock lock(mutex_);
  trace_.attach(std::move(tracker));
}

std::shared_ptr<GatheredContext> DeviceCachingAllocator::context_of(const void* ptr) {
  const Lock lock(mutex_);
  return trace_.context_of(ptr);
}

std::pair<std::vector<SegmentInfo>, std::vector<TraceEntry>> DeviceCachingAllocator::snapshot(
    MempoolId_t id, bool include_trace) {
  const Lock lock(mutex_);
  const bool every = id == MempoolId_t{0, 0};
  std::vector<SegmentInfo> segments;
  for (const auto& entry : blocks_) {
    const Block* first = entry.second;
    if (first->prev != nullptr || (!every && first->home->pool.id != id)) {
      continue;
    }
    SegmentInfo& segment = segments.emplace_back();
    segment.device = device_;
    segment.address = reinterpret_cast<size_t>(first->ptr);
    segment.stream = first->home->stream;
    segment.is_large = !first->home->pool.is_small;
    segment.is_expandable = first->expandable != nullptr;
    segment.owner_private_pool_id = first->home->pool.id;
    segment.context_when_allocated = trace_.segment_context_of(first->ptr);
    for (const Block* block = first; block != nullptr; block = block->next) {
      auto& info = segment.blocks.emplace_back();
      info.size = block->size;
      info.requested_size = block->requested;
      info.allocated = block->allocated;
      info.active = !block->available();
      if (info.active) {
        info.context_when_allocated = trace_.context_of(block->ptr);
      }
      segment.total_size += block->size;
      segment.allocated_size += info.allocated ? block->size : 0;
      segment.active_size += info.active ? block->size : 0;
      segment.requested_size += info.active ? block->requested : 0;
    }
  }
  std::sort(segments.begin(), segments.end(), [](const SegmentInfo& a, const SegmentInfo& b) {
    return a.address < b.address;
  });
  std::vector<TraceEntry> trace;
  if (include_trace) {
    // Marks where in the history this picture was taken.
    trace_.record(TraceEntry::SNAPSHOT, nullptr, stats_.active_bytes(), nullptr, id);
    trace = trace_.entries();
  }
  return {std::move(segments), std::move(trace)};
}

} // namespace c10::musa::MUSACachingAllocator
