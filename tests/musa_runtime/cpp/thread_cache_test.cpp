// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// What threads keep for themselves of the caching allocator: the statistics stay exact, and nothing is kept from others.
#include <algorithm>
#include <barrier>

#include "runtime_test.h"

namespace {

using c10::CachingDeviceAllocator::DeviceStats;

constexpr size_t KiB = 1024;
constexpr size_t kSegment = 2048 * KiB; // of the small pool

class ThreadCacheTest : public RuntimeTest {};

DeviceStats stats() {
  return allocator::getDeviceStats(0);
}

void allocate_and_free(size_t nbytes) {
  allocator::raw_delete(allocator::raw_alloc(nbytes));
}

// A thread that does what it is told, one thing after the other.
class Worker {
 public:
  void run(std::function<void()> body) {
    body_ = std::move(body);
    meet_.arrive_and_wait();
    meet_.arrive_and_wait();
  }
  ~Worker() {
    body_ = nullptr;
    meet_.arrive_and_wait();
    thread_.join();
  }

 private:
  std::function<void()> body_;
  std::barrier<> meet_{2};
  std::thread thread_{[this] {
    while (true) {
      meet_.arrive_and_wait();
      if (body_ == nullptr) {
        return;
      }
      body_();
      meet_.arrive_and_wait();
    }
  }};
};

} // namespace

TEST_F(ThreadCacheTest, AThreadTakesTheBlockThatItFreedLast) {
  void* const first = allocator::raw_alloc(4 * KiB);
  void* const second = allocator::raw_alloc(4 * KiB);
  allocator::raw_delete(first);
  allocator::raw_delete(second);
  EXPECT_EQ(second, allocator::raw_alloc(4 * KiB)); // the pool would give the one that lies first
  EXPECT_EQ(first, allocator::raw_alloc(4 * KiB));
  allocator::raw_delete(first);
  allocator::raw_delete(second);
}

TEST_F(ThreadCacheTest, NobodyElseAndNoOtherStreamTakesIt) {
  void* const mine = allocator::raw_alloc(4 * KiB);
  allocator::raw_delete(mine);
  Worker worker;
  void* theirs = nullptr;
  worker.run([&] { theirs = allocator::raw_alloc(4 * KiB); });
  EXPECT_NE(mine, theirs);
  void* const elsewhere = allocator::raw_alloc_with_stream(4 * KiB, c10::musa::getStreamFromPool().stream());
  EXPECT_NE(mine, elsewhere);
  allocator::raw_delete(elsewhere);
  allocator::raw_delete(theirs);
}

TEST_F(ThreadCacheTest, PeaksAreThoseOfWhatWasInUseAtATime) {
  allocate_and_free(4 * KiB);
  allocator::resetPeakStats(0);
  allocate_and_free(4 * KiB); // rests now
  allocate_and_free(8 * KiB);
  Worker worker;
  worker.run([] { allocate_and_free(6 * KiB); });
  allocate_and_free(5 * KiB - 100);
  const DeviceStats after = stats();
  EXPECT_EQ(after.allocated_bytes[0].peak, 8 * KiB);
  EXPECT_EQ(after.active_bytes[0].peak, 8 * KiB);
  EXPECT_EQ(after.requested_bytes[0].peak, 8 * KiB);
  EXPECT_EQ(after.allocation[0].peak, 1);
  EXPECT_EQ(after.active[0].peak, 1);
  EXPECT_EQ(after.allocated_bytes[0].current, 0);

  void* const one = allocator::raw_alloc(4 * KiB);
  void* const other = allocator::raw_alloc(8 * KiB);
  EXPECT_EQ(stats().allocated_bytes[0].peak, 12 * KiB);
  EXPECT_EQ(stats().allocation[0].peak, 2);
  allocator::raw_delete(one);
  allocator::raw_delete(other);
}

TEST_F(ThreadCacheTest, EveryAllocationIsCounted) {
  const DeviceStats before = stats();
  constexpr int kPairs = 1000;
  on_threads([](int t) {
    for (int i = 0; i < kPairs; ++i) {
      allocate_and_free(100 * (static_cast<size_t>(t) + 1)); // 512 bytes each
    }
  });
  const DeviceStats after = stats();
  const auto check = [](const auto& now, const auto& then, int64_t expected) {
    for (const size_t type : {0, 1}) { // all, small pool
      EXPECT_EQ(now[type].allocated - then[type].allocated, expected);
      EXPECT_EQ(now[type].freed - then[type].freed, expected);
      EXPECT_EQ(now[type].current, then[type].current);
    }
  };
  check(after.allocation, before.allocation, kThreads * kPairs);
  check(after.active, before.active, kThreads * kPairs);
  check(after.allocated_bytes, before.allocated_bytes, kThreads * kPairs * 512);
  check(after.active_bytes, before.active_bytes, kThreads * kPairs * 512);
  check(after.requested_bytes, before.requested_bytes, kPairs * 100 * (1 + 2 + 3 + 4));
}

TEST_F(ThreadCacheTest, FreeBlocksAreFreeToWhoeverLooks) {
  void* const memory = allocator::raw_alloc(4 * KiB);
  EXPECT_TRUE(allocator::owns(memory));
  allocator::raw_delete(memory);
  EXPECT_FALSE(allocator::owns(memory));
  allocate_and_free(4 * KiB);
  EXPECT_EQ(allocator::cacheInfo(0), std::make_pair(kSegment, kSegment));
  allocate_and_free(4 * KiB);
  const auto snapshot = allocator::snapshot();
  ASSERT_EQ(1u, snapshot.segments.size());
  EXPECT_EQ(1u, snapshot.segments[0].blocks.size());
  EXPECT_EQ(0u, snapshot.segments[0].active_size);
}

TEST_F(ThreadCacheTest, MemoryIsNotAskedForWhileBlocksRest) {
  allocator::resetPeakStats(0);
  std::vector<void*> held;
  for (size_t i = 0; i < kSegment / (4 * KiB); ++i) {
    held.push_back(allocator::raw_alloc(4 * KiB));
  }
  for (void* memory : held) {
    allocator::raw_delete(memory);
  }
  Worker worker; // the memory rests with one thread, and another needs it
  worker.run([] {
    void* const all = allocator::raw_alloc(1024 * KiB);
    allocate_and_free(1000 * KiB);
    allocator::raw_delete(all);
  });
  EXPECT_EQ(stats().segment[0].peak, 1);
  EXPECT_EQ(stats().segment[0].current, 1);
}

TEST_F(ThreadCacheTest, EmptyCacheTakesWhatLivingThreadsKeep) {
  Worker worker;
  worker.run([] { allocate_and_free(4 * KiB); });
  allocate_and_free(4 * KiB);
  EXPECT_EQ(stats().segment[0].current, 1);
  allocator::emptyCache();
  EXPECT_EQ(stats().segment[0].current, 0);
  worker.run([] { allocate_and_free(4 * KiB); }); // its cache has forgotten that block
  EXPECT_EQ(stats().segment[0].current, 1);
}

TEST_F(ThreadCacheTest, AnEndedThreadLeavesItsBlocksToOthers) {
  void* theirs = nullptr;
  void* kept = nullptr;
  std::thread([&] {
    theirs = allocator::raw_alloc(4 * KiB);
    kept = allocator::raw_alloc(4 * KiB);
    allocator::raw_delete(theirs);
  }).join();
  EXPECT_EQ(stats().allocated_bytes[0].current, 4 * KiB);
  void* const mine = allocator::raw_alloc(4 * KiB);
  EXPECT_EQ(theirs, mine);
  allocator::raw_delete(kept);
  allocator::raw_delete(mine);
}

TEST_F(ThreadCacheTest, AnotherThreadFreesABlockAndItsFirstOwnerForgetsIt) {
  void* const memory = allocator::raw_alloc(4 * KiB);
  Worker worker;
  worker.run([&] { allocator::raw_delete(memory); });
  EXPECT_THROW(allocator::raw_delete(memory), c10::Error);
  void* theirs = nullptr;
  worker.run([&] { theirs = allocator::raw_alloc(4 * KiB); });
  ASSERT_EQ(memory, theirs);
  allocator::raw_delete(theirs);
  worker.run([&] { EXPECT_THROW(allocator::raw_delete(theirs), c10::Error); });
  EXPECT_EQ(stats().allocated_bytes[0].current, 0);
}

TEST_F(ThreadCacheTest, ASecondFreeOfARestingBlockIsRefused) {
  void* const memory = allocator::raw_alloc(4 * KiB);
  allocator::raw_delete(memory);
  EXPECT_THROW(allocator::raw_delete(memory), c10::Error);
  EXPECT_EQ(stats().allocated_bytes[0].current, 0);
  EXPECT_EQ(stats().allocation[0].current, 0);
}

TEST_F(ThreadCacheTest, ABlockThatABusyStreamUsesDoesNotRest) {
  const MUSAStream own = c10::musa::getStreamFromPool();
  const MUSAStream busy = c10::musa::getStreamFromPool();
  Blocker blocker(busy.stream());
  Stamped first(4 * KiB, 7, own);
  char* const address = first.data();
  {
    const c10::DataPtr data = first.release();
    allocator::recordStream(data, busy);
  }
  Stamped second(4 * KiB, 8, own);
  if (!mode_is("lazy")) { // there, asking whether the stream has finished makes it finish
    EXPECT_NE(address, second.data());
  }
  blocker.release();
  busy.synchronize();
  second.free();
}

// More blocks than a cache has places for, of a few sizes, freed in another order and now and then by another thread.
TEST_F(ThreadCacheTest, ThreadsThatReuseBlocksNeverShareMemory) {
  std::mutex mutex;
  std::vector<void*> handed_over;
  on_threads([&](int t) {
    std::minstd_rand random(static_cast<unsigned>(t) + 1);
    const auto stamp = static_cast<char>(t + 1);
    std::vector<std::pair<char*, size_t>> held;
    for (int i = 0; i < 4000; ++i) {
      if (held.size() < 300 && random() % 3 != 0) {
        const size_t size = 512 << random() % 4;
        char* const memory = static_cast<char*>(allocator::raw_alloc(size));
        EXPECT_OK(musaMemset(memory, stamp, size));
        held.emplace_back(memory, size);
        continue;
      }
      if (held.empty()) {
        continue;
      }
      std::swap(held[random() % held.size()], held.back());
      const auto [memory, size] = held.back();
      held.pop_back();
      std::vector<char> bytes(size);
      EXPECT_OK(musaMemcpy(bytes.data(), memory, size, musaMemcpyDeviceToHost));
      EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [stamp](char byte) { return byte == stamp; }));
      void* freed = memory;
      if (random() % 8 == 0) {
        const std::lock_guard<std::mutex> lock(mutex);
        handed_over.push_back(memory);
        freed = handed_over.size() > 8 ? handed_over[random() % 8] : nullptr;
        std::erase(handed_over, freed);
      }
      allocator::raw_delete(freed);
      if (i % 500 == 0) {
        EXPECT_GE(stats().allocated_bytes[0].current, 0);
      }
    }
    for (const auto& [memory, size] : held) {
      allocator::raw_delete(memory);
    }
  });
  for (void* memory : handed_over) {
    allocator::raw_delete(memory);
  }
}
