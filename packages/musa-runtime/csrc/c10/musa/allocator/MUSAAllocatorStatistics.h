// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/flat_hash_map.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace c10::musa::MUSACachingAllocator {

using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;
using c10::CachingDeviceAllocator::DeviceStats;

constexpr auto kBothPools = static_cast<size_t>(StatType::AGGREGATE);
constexpr auto kSmallPools = static_cast<size_t>(StatType::SMALL_POOL);
constexpr auto kLargePools = static_cast<size_t>(StatType::LARGE_POOL);

// One statistic for the small pools, the large pools and both: its current value, its peak, and the sums of all increases
// and decreases since the last reset. The values for both kinds of pools and the sum of decreases are derived on reading,
// so an update writes half as much as c10's StatArray.
class Figure {
 public:
  void increase(StatType pool, size_t amount) {
    const auto i = static_cast<size_t>(pool);
    const int64_t now = current_[i] += static_cast<int64_t>(amount);
    increases_[i] += static_cast<int64_t>(amount);
    const int64_t both = now + current_[kSmallPools + kLargePools - i]; // of this kind of pools and of the other
    if (now > peak_[i]) {
      peak_[i] = now;
    }
    if (both > peak_[kBothPools]) {
      peak_[kBothPools] = both;
    }
  }

  void decrease(StatType pool, size_t amount) { current_[static_cast<size_t>(pool)] -= static_cast<int64_t>(amount); }

  void change(StatType pool, int64_t amount) {
    if (amount > 0) {
      increase(pool, static_cast<size_t>(amount));
    } else {
      decrease(pool, static_cast<size_t>(-amount));
    }
  }

  // Of small and large pools together.
  int64_t current() const { return current_[kSmallPools] + current_[kLargePools]; }
  int64_t current(size_t pool) const { return pool == kBothPools ? current() : current_[pool]; }

  void reset_peak();
  void reset_accumulated();
  StatArray read() const;

 private:
  // Indexed by StatType. The element for both kinds of pools is used only in peak_.
  std::array<int64_t, 3> current_{};
  std::array<int64_t, 3> increases_{};
  std::array<int64_t, 3> peak_{};
  std::array<int64_t, 3> at_reset_{}; // current_ when increases_ was last set to 0
};

// The active blocks that the program has freed and other streams still use. The active blocks are these and the allocated
// ones, so nothing is counted while no block is pending, as in most programs; the peak of the active blocks is then that of
// the allocated blocks.
class PendingFigure {
 public:
  bool any() const { return current_[kSmallPools] + current_[kLargePools] != 0; }
  int64_t current() const { return current_[kSmallPools] + current_[kLargePools]; }

  void increase(StatType pool, size_t amount) { current_[static_cast<size_t>(pool)] += static_cast<int64_t>(amount); }
  void decrease(StatType pool, size_t amount) { current_[static_cast<size_t>(pool)] -= static_cast<int64_t>(amount); }

  // Called after an increase of the allocated blocks while any().
  void note_peak(const Figure& allocated);
  void reset_peak(const Figure& allocated);
  void reset_accumulated();
  // The statistic of the active blocks.
  StatArray read_active(const Figure& allocated) const;

 private:
  // Indexed by StatType. The element for both kinds of pools is used only in peak_.
  std::array<int64_t, 3> current_{};
  std::array<int64_t, 3> peak_{}; // of the active blocks, at allocations made while a block was pending
  std::array<int64_t, 3> at_reset_{}; // current_ when the sums were last set to 0
};

// The statistics of one device, as torch.cuda.memory_stats documents them: one function per event. Guarded by the mutex of
// the DeviceCachingAllocator that owns it.
class AllocatorStatistics {
 public:
  // A block is allocated by the program.
  void on_allocate(StatType pool, size_t size, size_t requested) {
    allocation_.increase(pool, 1);
    allocated_bytes_.increase(pool, size);
    requested_bytes_.increase(pool, requested);
    if (C10_UNLIKELY(pending_.any())) {
      pending_.note_peak(allocation_);
      pending_bytes_.note_peak(allocated_bytes_);
    }
  }
  // The program frees a block that no other stream uses.
  void on_free(StatType pool, size_t size, size_t requested) {
    allocation_.decrease(pool, 1);
    allocated_bytes_.decrease(pool, size);
    requested_bytes_.decrease(pool, requested);
  }
  // The program frees a block that stays active until other streams have finished with it.
  void on_pending(StatType pool, size_t size) {
    allocation_.decrease(pool, 1);
    allocated_bytes_.decrease(pool, size);
    pending_.increase(pool, 1);
    pending_bytes_.increase(pool, size);
  }
  // No stream uses a pending block any more.
  void on_finished(StatType pool, size_t size, size_t requested) {
    pending_.decrease(pool, 1);
    pending_bytes_.decrease(pool, size);
    requested_bytes_.decrease(pool, requested);
  }
  // The net change, by one event, in the number of free blocks that are a part of their segment.
  void on_split_change(StatType pool, int64_t blocks, int64_t bytes) {
    inactive_split_.change(pool, blocks);
    inactive_split_bytes_.change(pool, bytes);
  }

  // A segment, or pages of an expandable segment, were reserved or released. For pages, `segments` is the net change in the
  // number of stretches of mapped pages.
  void on_reserve(StatType pool, MempoolId_t id, size_t bytes, int64_t segments);
  void on_release(StatType pool, MempoolId_t id, size_t bytes, int64_t segments);

  void on_oversize_allocation(int sign);
  void on_oversize_segment(int sign);
  void on_retry() { ++num_alloc_retries_; }
  void on_synchronize() { ++num_sync_all_streams_; }
  void on_out_of_memory() { ++num_ooms_; }

  size_t allocated_bytes() const { return static_cast<size_t>(allocated_bytes_.current()); }
  size_t active_bytes() const { return static_cast<size_t>(allocated_bytes_.current() + pending_bytes_.current()); }
  size_t reserved_bytes() const { return static_cast<size_t>(reserved_bytes_.current()); }
  size_t reserved_by_private_pools() const;

  // max_split_size, a setting, is left out.
  DeviceStats read() const;
  void reset_peaks();
  void reset_accumulated();
  // Called when the private pool is destroyed, which has released all its segments.
  void forget_private_pool(MempoolId_t id) { by_private_pool_.erase(id); }

 private:
  template <typename Visit>
  void for_each_figure(Visit visit);

  Figure allocation_;
  Figure allocated_bytes_;
  PendingFigure pending_;
  PendingFigure pending_bytes_;
  Figure requested_bytes_;
  Figure inactive_split_;
  Figure inactive_split_bytes_;
  Figure segment_;
  Figure reserved_bytes_;
  ska::flat_hash_map<MempoolId_t, Figure, MempoolIdHash> by_private_pool_; // reserved bytes
  c10::CachingAllocator::Stat oversize_allocations_;
  c10::CachingAllocator::Stat oversize_segments_;
  int64_t num_alloc_retries_ = 0;
  int64_t num_ooms_ = 0;
  int64_t num_sync_all_streams_ = 0;
  int64_t num_device_alloc_ = 0;
  int64_t num_device_free_ = 0;
};

} // namespace c10::musa::MUSACachingAllocator
