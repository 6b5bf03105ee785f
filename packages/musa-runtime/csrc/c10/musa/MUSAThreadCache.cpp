// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSAThreadCache.h>

#include <c10/musa/MUSADeviceCachingAllocator.h>

#include <utility>

// Caches of threads: what they hold, how the cache of the device takes it back, and their end with their threads.
namespace c10::musa::MUSACachingAllocator {

// Empties a place; whether its block rested.
bool ThreadCache::drop(Place& place) noexcept {
  Block* block = std::exchange(place.block, nullptr);
  place.ptr.store(nullptr, std::memory_order_relaxed);
  block->held_by = nullptr;
  if (!block->resting) {
    return false;
  }
  std::atomic<Block*>& list = resting_[list_of(block->requested, block->home->stream)];
  Block* before = nullptr;
  for (Block* other = list.load(std::memory_order_relaxed); other != block; other = other->free_next) {
    before = other;
  }
  unlink(list, before, block);
  block->resting = false;
  return true;
}

Block* ThreadCache::hold(Block* block) noexcept {
  const std::lock_guard<AdaptiveMutex> guard(mutex_);
  Place& place = held_[place_of(block->ptr)];
  Block* const before = place.block;
  const bool rested = before != nullptr && drop(place);
  place.block = block;
  place.ptr.store(block->ptr, std::memory_order_relaxed);
  block->held_by = this;
  return rested ? before : nullptr;
}

bool ThreadCache::let_go(Block* block) noexcept {
  const std::lock_guard<AdaptiveMutex> guard(mutex_);
  return drop(held_[place_of(block->ptr)]);
}

ThreadCache::Settled ThreadCache::settle(Hold others) {
  Settled result;
  const std::lock_guard<AdaptiveMutex> guard(mutex_);
  for (const std::atomic<Block*>& list : resting_) {
    while (Block* block = list.load(std::memory_order_relaxed)) {
      result.rested.push_back(block);
      drop(held_[place_of(block->ptr)]);
    }
  }
  if (others == Hold::NoLonger) {
    for (Place& place : held_) {
      if (place.block != nullptr) {
        drop(place);
      }
    }
  }
  result.reuse = std::exchange(reuse_, {});
  settled_.store(true, std::memory_order_relaxed);
  return result;
}

constinit thread_local std::array<ThreadCache*, C10_COMPILE_TIME_MAX_MUSA_DEVICES> thread_caches_by_device{};

namespace {

thread_local std::array<DeviceCachingAllocator*, C10_COMPILE_TIME_MAX_MUSA_DEVICES> owners{};
thread_local bool thread_ends = false;

struct AtThreadEnd {
  ~AtThreadEnd() {
    thread_ends = true;
    for (size_t device = 0; device < owners.size(); ++device) {
      if (ThreadCache* cache = std::exchange(thread_caches_by_device[device], nullptr)) {
        owners[device]->retire(cache);
      }
    }
  }
};

} // namespace

// Holds a small block that this thread was given.
void DeviceCachingAllocator::hold(Block* block) {
  ThreadCache* cache = thread_cache();
  if (C10_UNLIKELY(cache == nullptr)) {
    if (thread_ends) {
      return;
    }
    static thread_local const AtThreadEnd at_thread_end;
    (void)at_thread_end;
    cache = thread_caches_.emplace_back(std::make_unique<ThreadCache>(common_)).get();
    thread_caches_by_device[device_] = cache;
    owners[device_] = this;
  }
  if (Block* rested = cache->hold(block)) {
    return_rested(rested);
  }
}

// A block is no longer its thread's to reuse. False when it rests: nobody has it at present.
bool DeviceCachingAllocator::let_go_of_held(Block* block) {
  if (!block->held_by->let_go(block)) {
    return true;
  }
  return_rested(block);
  return false;
}

void DeviceCachingAllocator::return_rested(Block* block) {
  count_free(block);
  return_to_pool(block);
}

bool DeviceCachingAllocator::settle(ThreadCache& cache, ThreadCache::Hold others) {
  const ThreadCache::Settled settled = cache.settle(others);
  const auto count = [](StatArray& stat, size_t amount) {
    for (const StatType type : {StatType::AGGREGATE, StatType::SMALL_POOL}) {
      stat[static_cast<size_t>(type)].allocated += static_cast<int64_t>(amount);
      stat[static_cast<size_t>(type)].freed += static_cast<int64_t>(amount);
    }
  };
  count(stats_.allocation, settled.reuse.count);
  count(stats_.active, settled.reuse.count);
  count(stats_.allocated_bytes, settled.reuse.bytes);
  count(stats_.active_bytes, settled.reuse.bytes);
  count(stats_.requested_bytes, settled.reuse.requested);
  for (Block* block : settled.rested) {
    return_rested(block);
  }
  return !settled.rested.empty();
}

bool DeviceCachingAllocator::settle() {
  if (!common_.unsettled.load(std::memory_order_relaxed)) {
    return false;
  }
  common_.unsettled.exchange(false, std::memory_order_acquire); // before the look, so that what comes meanwhile counts
  bool found = false;
  for (const auto& cache : thread_caches_) {
    if (!cache->settled()) {
      found |= settle(*cache, ThreadCache::Hold::On);
    }
  }
  return found;
}

void DeviceCachingAllocator::forget_thread_caches() {
  const Lock lock(mutex_);
  for (const auto& cache : thread_caches_) {
    settle(*cache, ThreadCache::Hold::NoLonger);
  }
}

// The time by which blocks of a pool age: small ones do not.
uint64_t DeviceCachingAllocator::clock(const BlockPool& pool) const {
  uint64_t now = allocations_;
  if (!pool.is_small) {
    for (const auto& cache : thread_caches_) {
      now += cache->reused();
    }
  }
  return now;
}

void DeviceCachingAllocator::close_thread_caches(unsigned reason, bool closed) {
  const unsigned before = common_.closed.load(std::memory_order_relaxed);
  const unsigned now = closed ? before | reason : before & ~reason;
  if (now != before) {
    common_.closed.store(now, std::memory_order_relaxed);
    settle();
  }
}

void DeviceCachingAllocator::retire(ThreadCache* cache) {
  const Lock lock(mutex_);
  settle(*cache, ThreadCache::Hold::NoLonger);
  allocations_ += cache->reused();
  std::erase_if(thread_caches_, [cache](const auto& other) { return other.get() == cache; });
}

} // namespace c10::musa::MUSACachingAllocator
