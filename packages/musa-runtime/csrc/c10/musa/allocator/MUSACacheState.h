// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/allocator/MUSAAllocatorStatistics.h>
#include <c10/musa/allocator/MUSAAllocatorTrace.h>
#include <c10/musa/allocator/MUSABlockTable.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/allocator/MUSAMemoryPools.h>

namespace c10::musa::MUSACachingAllocator {

// The memory of a device that this process may reserve.
class MemoryLimit {
 public:
  // Total bytes of the device. Read at the first use, when the device must be the current one.
  size_t total() {
    if (total_ == 0) {
      size_t free_bytes = 0;
      C10_MUSA_CHECK(musaMemGetInfo(&free_bytes, &total_));
    }
    return total_;
  }
  size_t bytes() { return static_cast<size_t>(fraction_ * static_cast<double>(total())); }
  // Whether the limit, rather than the device, forbids reserving this much in total.
  bool forbids(size_t reserved) { return fraction_ < 1.0 && reserved > bytes(); }
  double fraction() const { return fraction_; }
  void set_fraction(double fraction) { fraction_ = fraction; }

 private:
  size_t total_ = 0;
  double fraction_ = 1.0;
};

// State shared by the parts of one device's cache. Guarded by the mutex of the DeviceCachingAllocator that owns it.
struct CacheState {
  explicit CacheState(DeviceIndex index) : device(index), pools(index), trace(index) {}

  const DeviceIndex device;
  BlockTable blocks;
  MemoryPools pools;
  AllocatorStatistics stats;
  AllocatorTrace trace; // its atomic part is read before the mutex is taken
  MemoryLimit limit;
  uint64_t allocations = 0; // in total: the time by which free blocks age

  // Counts a segment, or pages of an expandable one, as reserved or released; `segments` is the net change in the number of
  // stretches of mapped pages.
  void count_reserved(const Block& block, int64_t segments) {
    BlockPool& pool = block.home->pool;
    stats.on_reserve(pool.stat_type(), pool.id, block.size, segments);
    pool.owner.reserved += block.size;
  }
  void count_released(const Block& block, int64_t segments) {
    BlockPool& pool = block.home->pool;
    stats.on_release(pool.stat_type(), pool.id, block.size, segments);
    pool.owner.reserved -= block.size;
  }
  // Counts a free block that is a part of its segment as split; ignores other blocks and nullptr.
  void count_split(const Block* block, int sign) {
    if (block != nullptr && block->available() && !block->whole_segment()) {
      stats.on_split_change(block->home->pool.stat_type(), sign, sign * static_cast<int64_t>(block->size));
    }
  }
};

} // namespace c10::musa::MUSACachingAllocator
