// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAAdaptiveMutex.h>
#include <c10/musa/MUSABlockPool.h>
#include <c10/musa/MUSAMacros.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

namespace c10::musa::MUSACachingAllocator {

// The small blocks of one device that one thread works with. A block that the thread frees rests here, and the thread's next
// request for as many bytes on the same stream takes it again; neither touches what threads share, so threads that allocate
// at the same time do not wait for each other.
//
// To the device's cache a resting block is still allocated: it is in no bin and merges with no neighbour. What the cache
// counts is therefore never too low, and exact once it has settled, which is to take all resting blocks back. It does so
// before anybody looks at its statistics or its blocks, before a count reaches a new peak, and before it asks the device for
// memory.
//
// Locking: mutex_ guards everything here, and of the blocks held here `resting` and `free_next`. It is taken after the mutex
// of the device's cache, or alone. A block's ptr, requested and home do not change while it is held, and `held_by` is the
// device's: blocks come and go under both. Others take blocks away, but only the thread itself adds any: so what it does not
// find without the mutex is not there.
class alignas(128) ThreadCache {
 public:
  // What the caches of a device's threads ask at every use, and change rarely: alone in its line of memory.
  struct alignas(128) Common {
    // Why they neither give nor take at present; written under the mutex of the device's cache.
    static constexpr unsigned kHistory = 1; // every allocation is to be seen
    static constexpr unsigned kFilling = 2; // a filter says where memory comes from
    static constexpr unsigned kEvents = 4; // allocations look at events, so that memory returns
    std::atomic<unsigned> closed{0};
    std::atomic<bool> unsettled{false}; // whether settling may find anything
  };

  explicit ThreadCache(Common& common) : common_(common) {}

  // Pairs of free and allocate served here, which the device's cache has not counted.
  struct Reuse {
    size_t count = 0;
    size_t bytes = 0;
    size_t requested = 0;
  };

  // A block that rests here and fits exactly, as allocated; null without one, or when closed.
  void* take(size_t nbytes, musaStream_t stream) noexcept {
    std::atomic<Block*>& list = resting_[list_of(nbytes, stream)];
    if (list.load(std::memory_order_relaxed) == nullptr) {
      return nullptr;
    }
    const std::lock_guard<AdaptiveMutex> guard(mutex_);
    if (common_.closed.load(std::memory_order_relaxed) != 0) {
      return nullptr;
    }
    Block* before = nullptr;
    Block* block = list.load(std::memory_order_relaxed);
    for (int look = 0; look < kLooks && block != nullptr; ++look) {
      if (block->requested == nbytes && block->home->stream == stream) {
        unlink(list, before, block);
        block->resting = false;
        ++reuse_.count;
        reused_.store(reused_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        reuse_.bytes += block->size;
        reuse_.requested += nbytes;
        return block->ptr;
      }
      before = block;
      block = block->free_next;
    }
    return nullptr;
  }

  // Puts a freed block to rest; false when it is not held here, rests already, or closed.
  bool put(const void* ptr) noexcept {
    Place& place = held_[place_of(ptr)];
    if (place.ptr.load(std::memory_order_relaxed) != ptr) {
      return false;
    }
    const std::lock_guard<AdaptiveMutex> guard(mutex_);
    Block* block = place.block;
    if (block == nullptr || block->resting || common_.closed.load(std::memory_order_relaxed) != 0) {
      return false;
    }
    std::atomic<Block*>& list = resting_[list_of(block->requested, block->home->stream)];
    block->free_next = list.load(std::memory_order_relaxed);
    list.store(block, std::memory_order_relaxed);
    block->resting = true;
    if (settled_.load(std::memory_order_relaxed)) {
      settled_.store(false, std::memory_order_relaxed);
      common_.unsettled.store(true, std::memory_order_release);
    }
    return true;
  }

  // Below: by the device's cache, under its mutex.

  // Holds an allocated block. The one whose place it takes is held no longer, and returned if it rested.
  Block* hold(Block* block) noexcept;
  // Holds the block no longer. Whether it rested.
  bool let_go(Block* block) noexcept;
  struct Settled {
    std::vector<Block*> rested; // held no longer, and still marked allocated
    Reuse reuse;
  };
  enum class Hold { On, NoLonger };
  Settled settle(Hold others); // the others are the blocks in use
  // Whether settle() would find nothing. What another thread does at this moment may count as done later.
  bool settled() const noexcept {
    return settled_.load(std::memory_order_relaxed);
  }
  // Allocations served here, ever.
  uint64_t reused() const noexcept {
    return reused_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr int kLooks = 4;
  static constexpr unsigned kPlaceBits = 8;
  static constexpr unsigned kListBits = 6;
  static constexpr uint64_t kSpread = 0x9E3779B97F4A7C15; // 2^64 / golden ratio: its upper bits depend on all bits

  static size_t place_of(const void* ptr) noexcept {
    return static_cast<size_t>((reinterpret_cast<uintptr_t>(ptr) / kMinBlockSize) * kSpread >> (64 - kPlaceBits));
  }
  static size_t list_of(size_t nbytes, musaStream_t stream) noexcept {
    return static_cast<size_t>((nbytes ^ (reinterpret_cast<uintptr_t>(stream) << 8)) * kSpread >> (64 - kListBits));
  }
  struct Place {
    std::atomic<const void*> ptr{nullptr};
    Block* block = nullptr;
  };

  static void unlink(std::atomic<Block*>& list, Block* before, Block* block) noexcept {
    if (before == nullptr) {
      list.store(block->free_next, std::memory_order_relaxed);
    } else {
      before->free_next = block->free_next;
    }
    block->free_next = nullptr;
  }
  bool drop(Place& place) noexcept;

  AdaptiveMutex mutex_;
  Common& common_;
  std::atomic<bool> settled_{true}; // written under the mutex
  std::atomic<uint64_t> reused_{0}; // likewise
  Reuse reuse_;
  std::array<Place, size_t{1} << kPlaceBits> held_{}; // by address
  std::array<std::atomic<Block*>, size_t{1} << kListBits> resting_{}; // by bytes and stream; linked by free_next
};

// Of this thread, by device. Memory is freed in destructors of other thread-local objects too, perhaps after a thread's caches
// have gone: so this needs no destructor itself, and no check whether it was made.
extern constinit thread_local std::array<ThreadCache*, C10_COMPILE_TIME_MAX_MUSA_DEVICES> thread_caches_by_device;

} // namespace c10::musa::MUSACachingAllocator
