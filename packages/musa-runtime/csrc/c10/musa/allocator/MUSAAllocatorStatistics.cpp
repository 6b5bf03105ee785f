// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/allocator/MUSAAllocatorStatistics.h>

#include <c10/musa/MUSACompat.h>

#include <algorithm>

namespace c10::musa::MUSACachingAllocator {
namespace {

void change(c10::CachingAllocator::Stat& stat, int sign) {
  if (sign > 0) {
    stat.increase(1);
  } else {
    stat.decrease(1);
  }
}

} // namespace

void Figure::reset_peak() {
  peak_ = current_;
  peak_[kBothPools] = current();
}

void Figure::reset_accumulated() {
  at_reset_ = current_;
  increases_ = {};
}

StatArray Figure::read() const {
  StatArray result;
  for (const size_t i : {kSmallPools, kLargePools}) {
    result[i].current = current_[i];
    result[i].peak = peak_[i];
    result[i].allocated = increases_[i];
    result[i].freed = at_reset_[i] + increases_[i] - current_[i];
  }
  auto& both = result[kBothPools];
  both.current = current();
  both.peak = peak_[kBothPools];
  both.allocated = result[kSmallPools].allocated + result[kLargePools].allocated;
  both.freed = result[kSmallPools].freed + result[kLargePools].freed;
  return result;
}

void PendingFigure::note_peak(const Figure& allocated) {
  for (const size_t i : {kBothPools, kSmallPools, kLargePools}) {
    const int64_t active = allocated.current(i) + (i == kBothPools ? current() : current_[i]);
    peak_[i] = std::max(peak_[i], active);
  }
}

void PendingFigure::reset_peak(const Figure& allocated) {
  peak_ = {};
  note_peak(allocated);
}

void PendingFigure::reset_accumulated() { at_reset_ = current_; }

StatArray PendingFigure::read_active(const Figure& allocated) const {
  StatArray result = allocated.read();
  for (const size_t i : {kSmallPools, kLargePools}) {
    result[i].current += current_[i];
    result[i].peak = std::max(result[i].peak, peak_[i]);
    result[i].freed += at_reset_[i] - current_[i];
  }
  auto& both = result[kBothPools];
  both.current += current();
  both.peak = std::max(both.peak, peak_[kBothPools]);
  both.freed = result[kSmallPools].freed + result[kLargePools].freed;
  return result;
}

void AllocatorStatistics::on_reserve(StatType pool, MempoolId_t id, size_t bytes, int64_t segments) {
  ++num_device_alloc_;
  segment_.change(pool, segments);
  reserved_bytes_.increase(pool, bytes);
  if (id != MempoolId_t{0, 0}) {
    by_private_pool_[id].increase(pool, bytes);
  }
}

void AllocatorStatistics::on_release(StatType pool, MempoolId_t id, size_t bytes, int64_t segments) {
  ++num_device_free_;
  segment_.change(pool, segments);
  reserved_bytes_.decrease(pool, bytes);
  if (id != MempoolId_t{0, 0}) {
    by_private_pool_[id].decrease(pool, bytes);
  }
}

void AllocatorStatistics::on_oversize_allocation(int sign) { change(oversize_allocations_, sign); }

void AllocatorStatistics::on_oversize_segment(int sign) { change(oversize_segments_, sign); }

size_t AllocatorStatistics::reserved_by_private_pools() const {
  int64_t bytes = 0;
  for (const auto& pool : by_private_pool_) {
    bytes += pool.second.current();
  }
  return static_cast<size_t>(bytes);
}

DeviceStats AllocatorStatistics::read() const {
  DeviceStats stats;
  stats.allocation = allocation_.read();
  stats.segment = segment_.read();
  stats.active = pending_.read_active(allocation_);
  stats.inactive_split = inactive_split_.read();
  stats.allocated_bytes = allocated_bytes_.read();
  stats.reserved_bytes = reserved_bytes_.read();
  for (const auto& pool : by_private_pool_) {
    add_private_pool(stats, pool.first, pool.second.read());
  }
  stats.active_bytes = pending_bytes_.read_active(allocated_bytes_);
  stats.inactive_split_bytes = inactive_split_bytes_.read();
  stats.requested_bytes = requested_bytes_.read();
  stats.num_alloc_retries = num_alloc_retries_;
  stats.num_ooms = num_ooms_;
  stats.oversize_allocations = oversize_allocations_;
  stats.oversize_segments = oversize_segments_;
  stats.num_sync_all_streams = num_sync_all_streams_;
  stats.num_device_alloc = num_device_alloc_;
  stats.num_device_free = num_device_free_;
  return stats;
}

template <typename Visit>
void AllocatorStatistics::for_each_figure(Visit visit) {
  for (Figure* figure :
       {&allocation_, &allocated_bytes_, &requested_bytes_, &inactive_split_, &inactive_split_bytes_, &segment_,
        &reserved_bytes_}) {
    visit(*figure);
  }
  for (auto& pool : by_private_pool_) {
    visit(pool.second);
  }
}

void AllocatorStatistics::reset_peaks() {
  for_each_figure([](Figure& figure) { figure.reset_peak(); });
  pending_.reset_peak(allocation_);
  pending_bytes_.reset_peak(allocated_bytes_);
  oversize_allocations_.reset_peak();
  oversize_segments_.reset_peak();
}

void AllocatorStatistics::reset_accumulated() {
  for_each_figure([](Figure& figure) { figure.reset_accumulated(); });
  pending_.reset_accumulated();
  pending_bytes_.reset_accumulated();
  oversize_allocations_.reset_accumulated();
  oversize_segments_.reset_accumulated();
  num_alloc_retries_ = 0;
  num_ooms_ = 0;
  num_sync_all_streams_ = 0;
  num_device_alloc_ = 0;
  num_device_free_ = 0;
}

} // namespace c10::musa::MUSACachingAllocator
