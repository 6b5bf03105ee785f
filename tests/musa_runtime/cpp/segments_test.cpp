// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Segments of the caching allocator: their allocation, their release, and the order of releases.
#include <c10/musa/MUSACaptures.h>
#include <c10/musa/allocator/MUSASegments.h>

#include "runtime_test.h"

namespace {

using allocator::Block;
using allocator::CacheState;
using allocator::MemoryPool;
using allocator::Segments;

constexpr size_t kMiB = 1 << 20;
constexpr c10::MempoolId_t kPrivate{7, 1};

class SegmentsTest : public RuntimeTest {
 protected:
  // Adds a segment that consists of one free block in its bin.
  Block* add_free(size_t size, MemoryPool& pool, musaStream_t stream = nullptr) {
    Block* block = segments_.add(pool.large.on(stream), size, lock_);
    EXPECT_NE(nullptr, block);
    make_free(block);
    return block;
  }
  Block* add_free(size_t size) { return add_free(size, cache_.pools.default_pool()); }
  static void make_free(Block* block) {
    block->allocated = false;
    block->home->free.insert(block);
  }
  // Returns the sizes of the free segments, in ascending order.
  std::vector<size_t> cached() {
    std::vector<size_t> sizes;
    cache_.pools.default_pool().large.on(nullptr).free.for_each(
        [&sizes](const Block* block) { sizes.push_back(block->size); });
    return sizes;
  }

  allocator::AllocatorMutex mutex_;
  Segments::Lock lock_{mutex_};
  CacheState cache_{0};
  Segments segments_{cache_};
};

} // namespace

TEST_F(SegmentsTest, ASegmentIsOneBlockThatIsCountedUntilItIsReleased) {
  Block* block = add_free(20 * kMiB);
  EXPECT_EQ(20 * kMiB, block->size);
  EXPECT_TRUE(block->whole_segment());
  EXPECT_EQ(block, cache_.blocks.find(block->ptr));
  EXPECT_EQ(20 * kMiB, cache_.stats.reserved_bytes());
  EXPECT_EQ(20 * kMiB, cache_.pools.default_pool().reserved);
  EXPECT_EQ(1u, musaEmulatorLiveAllocations(0));
  segments_.release_all(lock_);
  EXPECT_TRUE(lock_.owns_lock());
  EXPECT_TRUE(cache_.blocks.empty());
  EXPECT_EQ(0u, cache_.stats.reserved_bytes());
  EXPECT_EQ(0u, musaEmulatorLiveAllocations(0));
}

TEST_F(SegmentsTest, SmallRequestsShareASegmentUnlessTheirPoolMayNotSplit) {
  MemoryPool& pool = cache_.pools.default_pool();
  EXPECT_EQ(2 * kMiB, segments_.size_for(pool, 512));
  EXPECT_EQ(20 * kMiB, segments_.size_for(pool, 5 * kMiB));
  EXPECT_EQ(42 * kMiB, segments_.size_for(pool, 41 * kMiB));
  pool.no_split = true;
  EXPECT_EQ(5 * kMiB, segments_.size_for(pool, 5 * kMiB));
}

TEST_F(SegmentsTest, ASegmentWithABlockInUseStays) {
  Block* used = segments_.add(cache_.pools.default_pool().large.on(nullptr), 20 * kMiB, lock_);
  used->allocated = true;
  add_free(4 * kMiB);
  segments_.release_all(lock_);
  EXPECT_EQ(1u, musaEmulatorLiveAllocations(0));
  EXPECT_EQ(used, cache_.blocks.find_allocated(used->ptr));
  make_free(used);
  segments_.release_all(lock_);
}

TEST_F(SegmentsTest, TheSmallestSegmentThatIsLargeEnoughMakesRoom) {
  for (const size_t size : {4, 8, 16}) {
    add_free(size * kMiB);
  }
  segments_.release_to_fit(6 * kMiB, lock_);
  EXPECT_EQ((std::vector<size_t>{4 * kMiB, 16 * kMiB}), cached());
  add_free(2 * kMiB);
  segments_.release_to_fit(18 * kMiB, lock_); // no single segment is large enough, so the largest ones are released
  EXPECT_EQ(std::vector<size_t>{2 * kMiB}, cached());
  segments_.release_all(lock_);
}

TEST_F(SegmentsTest, WhatCannotBeReleasedReturnsToTheCache) {
  add_free(4 * kMiB);
  add_free(8 * kMiB);
  for (const char* call : {"musaEventRecord", "musaEventSynchronize"}) {
    EXPECT_OK(musaEmulatorFailNext(call, musaErrorUnknown));
    EXPECT_THROW(segments_.release_all(lock_), c10::Error);
    EXPECT_TRUE(lock_.owns_lock());
    EXPECT_EQ((std::vector<size_t>{4 * kMiB, 8 * kMiB}), cached());
    EXPECT_EQ(12 * kMiB, cache_.stats.reserved_bytes());
  }
  segments_.release_all(lock_);
}

TEST_F(SegmentsTest, MemoryOfADestroyedStreamOfTheProgramIsReleasedAfterAllWorkOfTheDevice) {
  musaStream_t stream = nullptr;
  EXPECT_OK(musaStreamCreateWithFlags(&stream, musaStreamNonBlocking));
  add_free(4 * kMiB, cache_.pools.default_pool(), stream);
  EXPECT_OK(musaStreamDestroy(stream));
  const auto waits = musaEmulatorApiCallCount("musaDeviceSynchronize");
  segments_.release_all(lock_);
  EXPECT_EQ(waits + 1, musaEmulatorApiCallCount("musaDeviceSynchronize"));
  EXPECT_EQ(0u, cache_.stats.reserved_bytes());
}

TEST_F(SegmentsTest, DuringACaptureNothingIsReleased) {
  add_free(4 * kMiB);
  c10::musa::note_capture_begin();
  segments_.release_all(lock_);
  EXPECT_TRUE(c10::musa::note_capture_end());
  EXPECT_EQ(std::vector<size_t>{4 * kMiB}, cached());
  segments_.release_all(lock_);
}

TEST_F(SegmentsTest, ThereIsNoRoomBeyondTheLimitOrTheDevice) {
  auto& home = cache_.pools.default_pool().large.on(nullptr);
  cache_.limit.set_fraction(0.25); // of 256 MiB
  const auto calls = musaEmulatorApiCallCount("musaMalloc");
  EXPECT_EQ(nullptr, segments_.add(home, 80 * kMiB, lock_));
  EXPECT_EQ(calls, musaEmulatorApiCallCount("musaMalloc"));
  cache_.limit.set_fraction(1.0);
  EXPECT_OK(musaEmulatorFailNext("musaMalloc", musaErrorMemoryAllocation));
  EXPECT_EQ(nullptr, segments_.add(home, 80 * kMiB, lock_));
  EXPECT_OK(musaEmulatorFailNext("musaMalloc", musaErrorUnknown));
  EXPECT_THROW(segments_.add(home, 80 * kMiB, lock_), c10::Error);
  EXPECT_EQ(0u, cache_.stats.reserved_bytes());
  EXPECT_TRUE(cache_.blocks.empty());
}

TEST_F(SegmentsTest, APrivatePoolKeepsItsSegmentsWhileItIsHeldAndGoesWithTheLast) {
  MemoryPool& pool = cache_.pools.hold(kPrivate, nullptr);
  add_free(4 * kMiB, pool);
  segments_.release_all(lock_);
  EXPECT_EQ(1u, musaEmulatorLiveAllocations(0));
  cache_.pools.release(kPrivate);
  segments_.drop_unused_pools(lock_);
  EXPECT_TRUE(cache_.pools.contains(kPrivate)) << "it has a segment";
  segments_.release_pool(kPrivate, lock_);
  EXPECT_EQ(0u, musaEmulatorLiveAllocations(0));
  EXPECT_FALSE(cache_.pools.contains(kPrivate));
}
