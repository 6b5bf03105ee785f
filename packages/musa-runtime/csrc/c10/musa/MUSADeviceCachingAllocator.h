// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSABlockPool.h>
#include <c10/util/flat_hash_map.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <unordered_map>

namespace c10::musa::MUSACachingAllocator {

using c10::CachingDeviceAllocator::DeviceStats;
using c10::CachingDeviceAllocator::SegmentInfo;

// The cache of one device.
//
// Locking
//   mutex_            guards every field below it, and every Block, StreamPool and BlockPool reachable from them.
//   lock order        GIL, then mutex_. Nothing here takes the GIL.
//   not under mutex_  SDK calls that may wait or run queued work (free, event record/query, synchronise): queued work may
//                     itself free memory, on this or on a worker thread. Such code takes what it needs out of the
//                     structures, unlocks, calls, locks again and puts back what failed.
//   under mutex_      musaMalloc alone.
class DeviceCachingAllocator {
 public:
  explicit DeviceCachingAllocator(DeviceIndex device);

  // nbytes > 0; the device is the current one. Raises c10::OutOfMemoryError.
  void* malloc(size_t nbytes, musaStream_t stream);
  // False when ptr is not of this device. Raises for a pointer that was freed before.
  bool free(void* ptr);
  bool record_stream(void* ptr, MUSAStream stream);

  bool owns(const void* ptr);
  // The segment around an allocation; null when ptr is not of this device.
  void* base_allocation(void* ptr, size_t* size);

  void empty_cache(MempoolId_t id);
  DeviceStats stats();
  void reset_peak_stats();
  void reset_accumulated_stats();
  void set_memory_fraction(double fraction);
  double memory_fraction();
  // (bytes in free blocks, largest free block)
  std::pair<size_t, size_t> cache_info();
  std::vector<SegmentInfo> snapshot();

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct PendingEvent {
    musaEvent_t event;
    Block* block;
  };
  enum class Wait { No, Yes };

  BlockPool& pool_for(size_t size);
  Block* find_cached(StreamPool& home, size_t size);
  Block* grow(StreamPool& home, size_t size, size_t nbytes, Lock& lock);
  Block* new_segment(StreamPool& home, size_t size);
  void hand_out(Block* block, size_t size, size_t nbytes);
  void return_to_pool(Block* block);
  size_t merge(Block* block, Block* neighbour);

  void free_after_events(Block* block, Lock& lock);
  void process_events(Wait wait, Lock& lock);

  template <typename Select>
  std::vector<Block*> detach_segments(Select select);
  void detach(Block* block);
  void release(std::vector<Block*> segments, Lock& lock);
  void release_to_fit(size_t size, Lock& lock);
  void collect_garbage(size_t size, Lock& lock);
  size_t limit();
  size_t largest_cached() const;
  [[noreturn]] void out_of_memory(size_t nbytes, size_t segment, Lock& lock);

  void report(void* ptr, int64_t size, int64_t allocated, int64_t reserved) const;

  const DeviceIndex device_;

  std::mutex mutex_;
  // Blocks by address, free ones included: reusing a block touches the map only when the block is split or merged.
  ska::flat_hash_map<const void*, Block*> blocks_;
  BlockStore store_;
  ska::flat_hash_map<MempoolId_t, std::unique_ptr<MemoryPool>, MempoolIdHash> pools_;
  MemoryPool* const default_pool_;
  std::unordered_map<MUSAStream, std::deque<PendingEvent>> events_; // no empty queues
  DeviceStats stats_;
  uint64_t allocations_ = 0; // the clock of Block::freed_at
  size_t total_memory_ = 0; // of the device; read at the first use
  double fraction_ = 1.0;
};

} // namespace c10::musa::MUSACachingAllocator
