// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The caching allocator's data structures, which make no SDK call: mutex, blocks by address, memory pools, statistics.
#include <c10/musa/allocator/MUSAAllocatorMutex.h>
#include <c10/musa/allocator/MUSACacheState.h>

#include "runtime_test.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <utility>
#include <vector>

namespace {

using allocator::AllocatorStatistics;
using allocator::Block;
using allocator::BlockTable;
using allocator::MemoryPools;
using allocator::StatType;

constexpr c10::MempoolId_t kFirst{1, 0};
constexpr c10::MempoolId_t kSecond{2, 0};

// The address of a segment; never dereferenced.
char* const kBase = reinterpret_cast<char*>(size_t{1} << 40);

musaStream_t stream(size_t number) { return reinterpret_cast<musaStream_t>(number); }

} // namespace

TEST(AllocatorMutex, AHeldMutexIsNotTaken) {
  allocator::AllocatorMutex mutex;
  {
    const allocator::AllocatorLock held(mutex);
    EXPECT_FALSE(mutex.try_lock());
  }
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

TEST(AllocatorMutex, ThreadsTakeTurnsAndWaitersAreWoken) {
  constexpr int kTurns = 5000;
  allocator::AllocatorMutex mutex;
  int count = 0; // not atomic
  on_threads([&](int thread) {
    for (int i = 0; i < kTurns; ++i) {
      const allocator::AllocatorLock lock(mutex);
      const int before = count;
      if (i % 100 == thread) {
        std::this_thread::yield(); // so that the other threads wait for the locked mutex
      }
      count = before + 1;
    }
  });
  EXPECT_EQ(kThreads * kTurns, count);
}

TEST(BlockTable, BlocksThatWereCutMergeAgain) {
  MemoryPools pools(0);
  auto& home = pools.default_pool().large.on(nullptr);
  BlockTable blocks;
  Block* first = blocks.take();
  first->ptr = kBase;
  first->size = 4096;
  first->home = &home;
  blocks.enter(first);
  Block* second = blocks.cut(first, 1024);
  Block* third = blocks.cut(second, 1024);
  EXPECT_EQ(kBase + 2048, third->ptr);
  EXPECT_EQ(2048u, third->size);
  EXPECT_EQ(nullptr, blocks.find(second->ptr)) << "only the first block of a segment is in the map";

  second->allocated = true;
  blocks.enter(second);
  EXPECT_EQ(second, blocks.find_allocated(kBase + 1024));
  EXPECT_EQ(first, blocks.find(kBase));
  EXPECT_EQ(nullptr, blocks.find_allocated(kBase)) << "it is free";

  home.free.insert(first);
  home.free.insert(third);
  second->allocated = false;
  Block* whole = blocks.merge(second);
  EXPECT_EQ(first, whole);
  EXPECT_EQ(4096u, whole->size);
  EXPECT_TRUE(whole->whole_segment());
  EXPECT_EQ(0u, home.free.largest()) << "a merged block is in no bin";
  EXPECT_EQ(nullptr, blocks.find(kBase + 1024));
  blocks.erase(whole);
  EXPECT_TRUE(blocks.empty());
}

TEST(BlockTable, ABlockDoesNotMergeWithOnesInUseOrPending) {
  MemoryPools pools(0);
  BlockTable blocks;
  Block* first = blocks.take();
  first->ptr = kBase;
  first->size = 3072;
  first->home = &pools.default_pool().large.on(nullptr);
  Block* second = blocks.cut(first, 1024);
  Block* third = blocks.cut(second, 1024);
  first->allocated = true;
  third->pending_events = 1;
  EXPECT_EQ(second, blocks.merge(second));
  EXPECT_EQ(1024u, second->size);
}

TEST(MemoryPools, TheInnermostPoolWhoseFilterAcceptsAStreamIsFilled) {
  MemoryPools pools(0);
  pools.begin_filling(kFirst, [](musaStream_t) { return true; });
  pools.begin_filling(kSecond, [](musaStream_t each) { return each == stream(2); });
  EXPECT_EQ(kFirst, pools.filled_by(stream(1)).small.id);
  EXPECT_EQ(kSecond, pools.filled_by(stream(2)).small.id);
  EXPECT_THROW(pools.begin_filling(kSecond, [](musaStream_t) { return true; }), c10::Error);
  EXPECT_TRUE(pools.end_filling(kFirst)(stream(3)));
  EXPECT_EQ(&pools.default_pool(), &pools.filled_by(stream(1)));
  EXPECT_THROW((void)pools.end_filling(kFirst), c10::Error);
  (void)pools.end_filling(kSecond);
}

TEST(MemoryPools, APoolIsUnusedOnceNothingHoldsIt) {
  MemoryPools pools(0);
  const auto unused = [&pools](bool used) { return pools.take_unused([used](const auto&) { return used; }).size(); };
  pools.hold(kFirst, nullptr);
  pools.hold(kFirst, nullptr);
  EXPECT_EQ(2, pools.use_count(kFirst));
  pools.release(kFirst);
  EXPECT_EQ(0u, unused(false));
  pools.release(kFirst);
  EXPECT_THROW(pools.release(kFirst), c10::Error);
  EXPECT_EQ(0u, unused(true));
  EXPECT_EQ(1u, unused(false));
  EXPECT_FALSE(pools.contains(kFirst));
  EXPECT_EQ(0, pools.use_count(kFirst));
  EXPECT_THROW(pools.release(kFirst), c10::Error);
  EXPECT_THROW(pools.hold({0, 0}, nullptr), c10::Error);
  EXPECT_THROW(pools.set_no_split(kFirst), c10::Error);
}

TEST(AllocatorStatistics, PeaksAndSumsCountFromTheirReset) {
  AllocatorStatistics stats;
  stats.on_allocate(StatType::SMALL_POOL, 512, 100);
  stats.on_allocate(StatType::LARGE_POOL, 4096, 4000);
  stats.on_pending(StatType::LARGE_POOL, 4096);
  constexpr auto kBoth = static_cast<size_t>(StatType::AGGREGATE);
  constexpr auto kLarge = static_cast<size_t>(StatType::LARGE_POOL);
  auto now = stats.read();
  EXPECT_EQ(512, now.allocated_bytes[kBoth].current);
  EXPECT_EQ(4608, now.allocated_bytes[kBoth].peak);
  EXPECT_EQ(4608, now.allocated_bytes[kBoth].allocated);
  EXPECT_EQ(4096, now.allocated_bytes[kBoth].freed);
  EXPECT_EQ(4608, now.active_bytes[kBoth].current) << "active until no stream uses it";
  EXPECT_EQ(4100, now.requested_bytes[kBoth].current);
  stats.on_finished(StatType::LARGE_POOL, 4096, 4000);
  stats.reset_peaks();
  stats.reset_accumulated();
  now = stats.read();
  EXPECT_EQ(512, now.allocated_bytes[kBoth].peak);
  EXPECT_EQ(0, now.allocated_bytes[kBoth].allocated);
  EXPECT_EQ(0, now.allocated_bytes[kBoth].freed);
  EXPECT_EQ(512, now.active_bytes[kBoth].current);
  EXPECT_EQ(0, now.active_bytes[kLarge].peak);
}

// The allocator derives the number of active blocks; this test counts them at each event and compares.
TEST(AllocatorStatistics, ActiveBlocksAreTheAllocatedAndThePendingOnes) {
  struct Counted {
    std::array<int64_t, 3> current{}, peak{}, allocated{}, freed{};
    void change(StatType pool, int64_t amount) {
      for (const size_t i : {static_cast<size_t>(pool), static_cast<size_t>(StatType::AGGREGATE)}) {
        current[i] += amount;
        peak[i] = std::max(peak[i], current[i]);
        (amount > 0 ? allocated : freed)[i] += std::abs(amount);
      }
    }
  };
  struct Memory {
    StatType pool;
    size_t size;
  };
  std::mt19937 random(20);
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  AllocatorStatistics stats;
  Counted blocks;
  Counted bytes;
  std::vector<Memory> held;
  std::vector<Memory> pending;
  const auto take = [&](std::vector<Memory>& from) {
    std::swap(from[below(from.size())], from.back());
    const Memory memory = from.back();
    from.pop_back();
    return memory;
  };
  for (int step = 0; step < 20000; ++step) {
    switch (below(8)) {
      case 0:
      case 1:
      case 2: {
        const Memory memory{below(2) == 0 ? StatType::SMALL_POOL : StatType::LARGE_POOL, 512 * (1 + below(9))};
        stats.on_allocate(memory.pool, memory.size, memory.size - 1);
        blocks.change(memory.pool, 1);
        bytes.change(memory.pool, static_cast<int64_t>(memory.size));
        held.push_back(memory);
        break;
      }
      case 3:
      case 4:
        if (!held.empty()) {
          const Memory memory = take(held);
          stats.on_free(memory.pool, memory.size, memory.size - 1);
          blocks.change(memory.pool, -1);
          bytes.change(memory.pool, -static_cast<int64_t>(memory.size));
        }
        break;
      case 5:
        if (!held.empty() && pending.size() < 3) {
          pending.push_back(take(held));
          stats.on_pending(pending.back().pool, pending.back().size);
        }
        break;
      case 6:
        if (!pending.empty()) {
          const Memory memory = take(pending);
          stats.on_finished(memory.pool, memory.size, memory.size - 1);
          blocks.change(memory.pool, -1);
          bytes.change(memory.pool, -static_cast<int64_t>(memory.size));
        }
        break;
      default:
        if (below(16) == 0) {
          stats.reset_peaks();
          blocks.peak = blocks.current;
          bytes.peak = bytes.current;
        } else if (below(16) == 0) {
          stats.reset_accumulated();
          blocks.allocated = blocks.freed = bytes.allocated = bytes.freed = {};
        }
    }
    const auto now = stats.read();
    for (const auto& [counted, read] : {std::pair{&blocks, &now.active}, std::pair{&bytes, &now.active_bytes}}) {
      for (size_t i = 0; i < 3; ++i) {
        ASSERT_EQ(counted->current[i], (*read)[i].current) << "step " << step << ", pools " << i;
        ASSERT_EQ(counted->peak[i], (*read)[i].peak) << "step " << step << ", pools " << i;
        ASSERT_EQ(counted->allocated[i], (*read)[i].allocated) << "step " << step << ", pools " << i;
        ASSERT_EQ(counted->freed[i], (*read)[i].freed) << "step " << step << ", pools " << i;
      }
    }
    ASSERT_EQ(static_cast<size_t>(bytes.current[static_cast<size_t>(StatType::AGGREGATE)]), stats.active_bytes());
  }
}

TEST(AllocatorStatistics, PrivatePoolsAreCountedApartAndForgottenWhenTheyAreGone) {
  AllocatorStatistics stats;
  stats.on_reserve(StatType::LARGE_POOL, {0, 0}, 4096, 1);
  stats.on_reserve(StatType::LARGE_POOL, kFirst, 1024, 1);
  EXPECT_EQ(5120u, stats.reserved_bytes());
  EXPECT_EQ(1024u, stats.reserved_by_private_pools());
  stats.on_release(StatType::LARGE_POOL, kFirst, 1024, -1);
  EXPECT_EQ(1u, stats.read().reserved_bytes_by_private_pools.count(kFirst));
  stats.forget_private_pool(kFirst);
  EXPECT_EQ(0u, stats.read().reserved_bytes_by_private_pools.count(kFirst));
  EXPECT_EQ(4096u, stats.reserved_bytes());
}
