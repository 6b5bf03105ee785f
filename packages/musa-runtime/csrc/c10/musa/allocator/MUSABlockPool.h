// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/AllocatorConfig.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/musa/MUSAStream.h>

#include <array>
#include <atomic>
#include <bit>
#include <memory>
#include <vector>

// The data structures of the caching allocator. They call no SDK function and take no lock: the mutex of the
// DeviceCachingAllocator that owns them guards them.
namespace c10::musa::MUSACachingAllocator {

using c10::CachingAllocator::kMinBlockSize;
using c10::CachingAllocator::StatType;

inline size_t round_up(size_t size, size_t multiple) { return (size + multiple - 1) / multiple * multiple; }

struct StreamPool;
class ExpandableSegment;
class MUSAAllocator;

// A piece of a segment, the unit of allocation. A segment (one musaMalloc) starts as one block; the blocks of a segment
// form a list in address order.
struct Block {
  char* ptr = nullptr;
  size_t size = 0;
  size_t requested = 0; // bytes requested by the caller, before rounding
  StreamPool* home = nullptr;
  ExpandableSegment* expandable = nullptr; // the segment around it; null if that is a musaMalloc
  Block* prev = nullptr; // neighbours in the segment
  Block* next = nullptr;
  Block* free_prev = nullptr; // neighbours in the bin of the home pool
  Block* free_next = nullptr;
  unsigned bin = 0; // of the home pool, while the block is in one
  uint64_t freed_at = 0; // the number of allocations before the block became free: its age for garbage collection
  std::vector<MUSAStream> stream_uses; // other streams that use the block, by record_stream
  size_t pending_events = 0; // after the free: events of those streams that have not finished yet
  bool allocated = false;
  bool registered = false; // it can be found by its address
  bool oversize = false; // counted in oversize_allocations
  bool oversize_segment = false; // a part of a segment counted in oversize_segments; the undivided block has the mark

  bool whole_segment() const { return prev == nullptr && next == nullptr; }
  bool available() const { return !allocated && pending_events == 0; }
};

// Free blocks in bins by size. A bin spans at most 1/64 of its size and is sorted in ascending order. A two-level bitmap
// finds the next bin that holds a block: an exact best fit without walking a tree and without touching the system heap.
// Among equal sizes the lowest address comes first: that keeps live memory together, so that more segments become free as a
// whole (benchmarks/fragmentation.py: first-in or last-in order reserves one more segment on many trainings). If very many
// blocks have one size, only the first kTies of them are searched for the place.
class FreeBlocks {
 public:
  void insert(Block* block) {
    const unsigned bin = bin_of(block->size);
    block->bin = bin;
    Block* before = nullptr;
    Block* after = bins_[bin];
    while (after != nullptr && after->size < block->size) {
      before = after;
      after = after->free_next;
    }
    for (int ties = 0; ties < kTies && after != nullptr && after->size == block->size && after->ptr < block->ptr;
         ++ties) {
      before = after;
      after = after->free_next;
    }
    block->free_prev = before;
    block->free_next = after;
    if (after != nullptr) {
      after->free_prev = block;
    }
    if (before != nullptr) {
      before->free_next = block;
    } else {
      bins_[bin] = block;
      words_[bin / 64] |= uint64_t{1} << (bin % 64);
      summary_ |= uint64_t{1} << (bin / 64);
    }
  }

  void remove(Block* block) {
    if (block->free_next != nullptr) {
      block->free_next->free_prev = block->free_prev;
    }
    if (block->free_prev != nullptr) {
      block->free_prev->free_next = block->free_next;
    } else {
      const unsigned bin = block->bin;
      bins_[bin] = block->free_next;
      if (block->free_next == nullptr) {
        words_[bin / 64] &= ~(uint64_t{1} << (bin % 64));
        if (words_[bin / 64] == 0) {
          summary_ &= ~(uint64_t{1} << (bin / 64));
        }
      }
    }
    block->free_prev = nullptr;
    block->free_next = nullptr;
  }

  // The smallest block of at least size bytes; it stays in its bin.
  Block* best_fit(size_t size) const {
    const unsigned bin = bin_of(size);
    for (Block* block = bins_[bin]; block != nullptr; block = block->free_next) {
      if (block->size >= size) {
        return block;
      }
    }
    const int next = next_bin(bin + 1);
    return next < 0 ? nullptr : bins_[next];
  }

  size_t largest() const {
    if (summary_ == 0) {
      return 0;
    }
    const unsigned word = 63 - std::countl_zero(summary_);
    Block* block = bins_[word * 64 + 63 - std::countl_zero(words_[word])];
    while (block->free_next != nullptr) {
      block = block->free_next;
    }
    return block->size;
  }

  template <typename Visit>
  void for_each(Visit visit) const {
    for (int bin = next_bin(0); bin >= 0; bin = next_bin(bin + 1)) {
      for (Block* block = bins_[bin]; block != nullptr; block = block->free_next) {
        visit(block);
      }
    }
  }

 private:
  // Sizes below 64 KiB have a bin each; above, every power of two has 64 bins.
  static unsigned bin_of(size_t size) {
    const uint64_t units = size / kMinBlockSize;
    if (units < 64) {
      return static_cast<unsigned>(units);
    }
    const unsigned shift = static_cast<unsigned>(std::bit_width(units)) - 7;
    return shift * 64 + static_cast<unsigned>(units >> shift);
  }

  int next_bin(unsigned from) const {
    unsigned word = from / 64;
    if (word >= kWords) {
      return -1;
    }
    const uint64_t here = words_[word] & (~uint64_t{0} << (from % 64));
    if (here != 0) {
      return static_cast<int>(word * 64 + std::countr_zero(here));
    }
    const uint64_t later = word + 1 < 64 ? summary_ & (~uint64_t{0} << (word + 1)) : 0;
    if (later == 0) {
      return -1;
    }
    word = std::countr_zero(later);
    return static_cast<int>(word * 64 + std::countr_zero(words_[word]));
  }

  static constexpr int kTies = 32;
  static constexpr unsigned kWords = 36; // up to 2^49 bytes
  uint64_t summary_ = 0;
  std::array<uint64_t, kWords> words_{};
  std::array<Block*, kWords * 64> bins_{};
};

struct BlockPool;

// Blocks of one pool and one stream. A block is reused without synchronisation only on the stream that it was allocated
// for, where work is ordered anyway.
struct StreamPool {
  BlockPool& pool;
  musaStream_t stream;
  FreeBlocks free;

  StreamPool(BlockPool& owner, musaStream_t s) : pool(owner), stream(s) {}
};

struct MemoryPool;

// The small or the large part of one memory pool.
struct BlockPool {
  MemoryPool& owner;
  const bool is_small;
  const MempoolId_t id;
  std::vector<std::unique_ptr<StreamPool>> streams;

  BlockPool(MemoryPool& memory_pool, bool small, MempoolId_t mempool)
      : owner(memory_pool), is_small(small), id(mempool) {}

  StreamPool& on(musaStream_t stream) {
    for (const auto& candidate : streams) {
      if (candidate->stream == stream) {
        return *candidate;
      }
    }
    return *streams.emplace_back(std::make_unique<StreamPool>(*this, stream));
  }

  StatType stat_type() const { return is_small ? StatType::SMALL_POOL : StatType::LARGE_POOL; }
};

// The default pool, {0, 0}, or a private one of a graph, whose replays use the same addresses, or of a MemPool. Blocks
// never change pools.
struct MemoryPool {
  BlockPool small;
  BlockPool large;
  // For a private pool, the allocator of its segments; null for musaMalloc. Written by users, so it is not called under the
  // mutex.
  std::shared_ptr<MUSAAllocator> source;
  int use_count = 0; // graphs and MemPools that hold the pool
  size_t reserved = 0; // bytes of its segments
  bool use_on_oom = false; // its blocks serve requests for other pools before these run out of memory
  bool no_split = false; // segments are never split
  std::atomic<int> growing{0}; // allocations that unlocked the mutex on the way and will return to this pool

  explicit MemoryPool(MempoolId_t id) : small(*this, true, id), large(*this, false, id) {}

  bool is_private() const { return small.id != MempoolId_t{0, 0}; }
  // Whether free segments may be released: no holder relies on their addresses.
  bool may_release() const { return !is_private() || use_count == 0; }
};

// Block objects are recycled, never deleted: their number is bounded by the peak, and a split costs no system malloc.
class BlockStore {
 public:
  Block* take() {
    if (spare_ == nullptr) {
      constexpr size_t kSlab = 128;
      slabs_.push_back(std::make_unique<Block[]>(kSlab));
      for (size_t i = 0; i < kSlab; ++i) {
        give(&slabs_.back()[i]);
      }
    }
    Block* block = spare_;
    spare_ = block->free_next;
    block->free_next = nullptr;
    return block;
  }

  void give(Block* block) {
    block->expandable = nullptr;
    block->prev = nullptr;
    block->next = nullptr;
    block->free_prev = nullptr;
    block->requested = 0;
    block->pending_events = 0;
    block->allocated = false;
    block->registered = false;
    block->oversize = false;
    block->oversize_segment = false;
    block->free_next = spare_;
    spare_ = block;
  }

 private:
  std::vector<std::unique_ptr<Block[]>> slabs_;
  Block* spare_ = nullptr;
};

} // namespace c10::musa::MUSACachingAllocator
