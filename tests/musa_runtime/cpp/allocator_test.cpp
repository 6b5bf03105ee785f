// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The caching allocator with many threads, streams and devices, with exhausted memory and with failures of the SDK.
#include <c10/musa/allocator/MUSAAllocatorEvents.h>
#include <c10/musa/MUSACaptures.h>
#include <c10/musa/allocator/MUSADeviceCachingAllocator.h>

#include <algorithm>

#include "runtime_test.h"

namespace {

using c10::CachingDeviceAllocator::DeviceStats;

class AllocatorTest : public RuntimeTest {};

// Creates every stream of the pool, so that later code creates none.
void fill_stream_pool(DeviceIndex device) {
  for (int i = 0; i < 32; ++i) {
    c10::musa::getStreamFromPool(false, device).stream();
  }
}

size_t random_size(std::minstd_rand& random) {
  switch (random() % 4) {
    case 0: return 1 + random() % 4096;
    case 1: return 1 + random() % (1 << 20); // up to the limit of the small pool
    case 2: return (1 << 20) + random() % (4 << 20);
    default: return 512 * (1 + random() % 64);
  }
}

// Allocates, checks and frees memory at random, on the thread's own stream and on another one.
void churn(unsigned seed, DeviceIndex device, int steps) {
  std::minstd_rand random(seed);
  const MUSAGuard guard(device);
  const MUSAStream own = c10::musa::getStreamFromPool(false, device);
  const MUSAStream other = c10::musa::getStreamFromPool(false, device);
  std::vector<Stamped> held;
  struct Reading {
    unsigned char expected;
    std::vector<unsigned char> bytes;
  };
  std::deque<Reading> readings; // pending reads, whose buffers must not move
  const auto take = [&] {
    const size_t i = random() % held.size();
    Stamped taken = held[i];
    held[i] = held.back();
    held.pop_back();
    return taken;
  };
  for (int step = 0; step < steps; ++step) {
    const unsigned action = random() % 16;
    if (held.empty() || (action < 8 && held.size() < 12)) {
      held.emplace_back(random_size(random), static_cast<unsigned char>(random()), own);
    } else if (action < 12) {
      Stamped freed = take();
      freed.expect_intact();
      freed.free();
    } else if (action < 15) {
      // Used on another stream, and freed before that stream reaches the use.
      Stamped shared = take();
      MUSAEvent ready;
      ready.record(own);
      ready.block(other);
      Reading& reading = readings.emplace_back();
      reading.expected = shared.value();
      shared.read(other, reading.bytes);
      const c10::DataPtr data = shared.release();
      allocator::recordStream(data, other);
    } else {
      allocator::emptyCache();
    }
  }
  for (Stamped& rest : held) {
    rest.expect_intact();
    rest.free();
  }
  other.synchronize();
  for (const Reading& reading : readings) {
    for (const unsigned char byte : reading.bytes) {
      ASSERT_EQ(reading.expected, byte) << "memory was reused before the other stream had read it";
    }
  }
}

// A snapshot is the list of segments, or an object with the list and the recorded history.
template <class Snapshot>
auto segments_of(const Snapshot& snapshot) {
  if constexpr (requires { snapshot.segments; }) {
    return snapshot.segments;
  } else {
    return snapshot;
  }
}

// Compares the statistics that can be recomputed from the list of blocks.
void expect_books_balance() {
  for (DeviceIndex device = 0; device < kDevices; ++device) {
    int64_t segments = 0, reserved = 0, allocations = 0, allocated = 0, active = 0, requested = 0;
    for (const auto& segment : segments_of(allocator::snapshot())) {
      if (segment.device != device) {
        continue;
      }
      ++segments;
      reserved += static_cast<int64_t>(segment.total_size);
      size_t sum = 0;
      for (const auto& block : segment.blocks) {
        sum += block.size;
        allocations += block.allocated;
        allocated += block.allocated ? static_cast<int64_t>(block.size) : 0;
        active += block.active ? static_cast<int64_t>(block.size) : 0;
        requested += block.active ? static_cast<int64_t>(block.requested_size) : 0;
      }
      EXPECT_EQ(segment.total_size, sum) << "the blocks do not fill their segment";
    }
    const DeviceStats stats = allocator::getDeviceStats(device);
    EXPECT_EQ(segments, stats.segment[0].current);
    EXPECT_EQ(reserved, stats.reserved_bytes[0].current);
    EXPECT_EQ(allocations, stats.allocation[0].current);
    EXPECT_EQ(allocated, stats.allocated_bytes[0].current);
    EXPECT_EQ(active, stats.active_bytes[0].current);
    EXPECT_EQ(requested, stats.requested_bytes[0].current);
  }
}

} // namespace

TEST_F(AllocatorTest, ThreadsOnStreamsOfTheirOwnNeverShareMemory) {
  on_threads([](int t) { churn(static_cast<unsigned>(t) + 1, static_cast<DeviceIndex>(t % kDevices), 150); });
  expect_books_balance();
}

TEST_F(AllocatorTest, ThreadsOfOneDeviceNeverShareMemory) {
  on_threads([](int t) { churn(static_cast<unsigned>(t) + 11, 0, 150); });
  expect_books_balance();
}

TEST_F(AllocatorTest, BooksBalanceWhileBlocksAreHeld) {
  std::vector<Stamped> held;
  std::minstd_rand random(5);
  for (int i = 0; i < 100; ++i) {
    held.emplace_back(random_size(random), 1, c10::musa::getCurrentMUSAStream());
    if (i % 3 == 0) {
      held[random() % held.size()].free();
      std::erase_if(held, [](const Stamped& one) { return one.data() == nullptr; });
    }
    expect_books_balance();
  }
  for (Stamped& rest : held) {
    rest.free();
  }
}

TEST_F(AllocatorTest, MemoryIsFreedOnAnotherThreadThanItsOwn) {
  std::mutex mutex;
  std::vector<void*> handed;
  std::atomic<int> producing{kThreads / 2};
  on_threads([&](int t) {
    c10::musa::set_device(static_cast<DeviceIndex>(t % kDevices));
    if (t < kThreads / 2) {
      for (int i = 0; i < 300; ++i) {
        void* memory = allocator::raw_alloc(static_cast<size_t>(1 + i * 37));
        const std::lock_guard lock(mutex);
        handed.push_back(memory);
      }
      --producing;
      return;
    }
    while (true) {
      const bool last = producing == 0;
      std::vector<void*> taken;
      {
        const std::lock_guard lock(mutex);
        taken.swap(handed);
      }
      for (void* memory : taken) {
        allocator::raw_delete(memory);
      }
      if (last && taken.empty()) {
        return;
      }
      std::this_thread::yield();
    }
  });
  expect_books_balance();
}

TEST_F(AllocatorTest, MemoryUsedByABusyStreamIsNotHandedOut) {
  const MUSAStream own = c10::musa::getStreamFromPool();
  const MUSAStream busy = c10::musa::getStreamFromPool();
  Blocker blocker(busy.stream());
  Stamped first(5 << 20, 7, own);
  char* const address = first.data();
  {
    const c10::DataPtr data = first.release();
    allocator::recordStream(data, busy);
  }
  Stamped second(5 << 20, 8, own);
  if (!mode_is("lazy")) { // in lazy mode, querying the stream runs its work
    EXPECT_NE(address, second.data());
  }
  blocker.release();
  busy.synchronize();
  second.free();
  EXPECT_EQ(0, allocated_bytes(0));
}

TEST_F(AllocatorTest, ThreadsRunOutOfMemoryAndRecover) {
  constexpr size_t kChunk = 48 << 20; // of 256 MiB
  const int64_t before = allocator::getDeviceStats(0).num_ooms;
  std::atomic<int64_t> refused{0};
  on_threads([&](int t) {
    std::minstd_rand random(static_cast<unsigned>(t) + 1);
    const MUSAStream stream = c10::musa::getStreamFromPool(false, 0);
    std::vector<void*> held;
    for (int i = 0; i < 40; ++i) {
      try {
        held.push_back(allocator::raw_alloc_with_stream(kChunk + random() % kChunk, stream.stream()));
      } catch (const c10::OutOfMemoryError&) {
        ++refused;
        for (void* memory : held) {
          allocator::raw_delete(memory);
        }
        held.clear();
      }
    }
    for (void* memory : held) {
      allocator::raw_delete(memory);
    }
  });
  EXPECT_GT(refused, 0);
  EXPECT_EQ(refused, allocator::getDeviceStats(0).num_ooms - before);
  expect_books_balance();
  // No memory is held, so nearly all memory of the device can be allocated again.
  allocator::raw_delete(allocator::raw_alloc(200 << 20));
}

TEST_F(AllocatorTest, LimitsStatisticsAndSnapshotsAreAskedForDuringWork) {
  on_threads([](int t) {
    if (t == 0) {
      for (int i = 0; i < 40; ++i) {
        allocator::setMemoryFraction(i % 2 == 0 ? 1.0 : 0.9, 0);
        allocator::resetPeakStats(0);
        allocator::snapshot();
        const auto [free_bytes, largest] = allocator::cacheInfo(0);
        EXPECT_LE(largest, free_bytes);
        EXPECT_LE(allocator::getDeviceStats(0).allocated_bytes[0].current, 256 << 20);
      }
      return;
    }
    churn(static_cast<unsigned>(t) + 21, 0, 80);
  });
  allocator::setMemoryFraction(1.0, 0);
  expect_books_balance();
}

TEST_F(AllocatorTest, EventsAreReused) {
  const size_t before = musaEmulatorLiveEvents();
  on_threads([](int t) {
    const auto device = static_cast<DeviceIndex>(t % kDevices);
    const MUSAStream stream = c10::musa::getStreamFromPool(false, device);
    for (int i = 0; i < 100; ++i) {
      musaEvent_t event = nullptr;
      const char* call = nullptr;
      const auto between = c10::musa::BetweenCaptures::enter();
      ASSERT_TRUE(between.has_value());
      ASSERT_EQ(musaSuccess, allocator::record_event(*between, device, stream.stream(), &event, &call)) << call;
      EXPECT_OK(musaEventSynchronize(event));
      allocator::recycle_event(device, event);
    }
  });
  EXPECT_LE(musaEmulatorLiveEvents(), before + kThreads);
}

TEST_F(AllocatorTest, EverySdkCallMayFail) {
  fill_stream_pool(1); // another test covers the failure to create a stream
  const auto scenario = [] {
    const MUSAGuard guard(1);
    const MUSAStream own = c10::musa::getStreamFromPool();
    const MUSAStream other = c10::musa::getStreamFromPool();
    // Like a storage: the deleter runs even if a later call throws.
    c10::DataPtr data = allocator::get()->allocate(3 << 20);
    allocator::recordStream(data, own);
    allocator::recordStream(data, other);
    data.clear();
    data = allocator::get()->allocate(3 << 20);
    data.clear();
    allocator::emptyCache();
  };
  scenario();
  for (unsigned long long n = 1;; ++n) {
    ASSERT_LT(n, 300u) << "the sweep does not end";
    EXPECT_OK(musaEmulatorFailCall(n, musaErrorUnknown));
    try {
      scenario();
    } catch (const c10::Error& error) {
      EXPECT_NE(std::string::npos, std::string(error.what()).find("musa")) << "call " << n << ": " << error.what();
    }
    const bool reached = musaEmulatorFaultPending() == 0;
    musaEmulatorClearFaults();
    EXPECT_EQ(0, c10::musa::current_device()) << "call " << n;
    EXPECT_NO_THROW(scenario()) << "after call " << n;
    EXPECT_EQ(0, allocated_bytes(1)) << "call " << n;
    expect_books_balance();
    if (!reached) {
      EXPECT_GT(n, 5u) << "the sweep reached no call";
      break;
    }
  }
}

TEST_F(AllocatorTest, MemoryIsOfTheAllocatorsDeviceWhateverDeviceIsCurrent) {
  allocator::DeviceCachingAllocator device(1);
  const musaStream_t stream = c10::musa::getDefaultMUSAStream(1).stream();
  ASSERT_EQ(0, c10::musa::current_device());
  void* const small = device.malloc(4096, stream);
  void* const large = device.malloc(40 << 20, stream);
  for (void* const memory : {small, large}) {
    musaPointerAttributes attributes{};
    EXPECT_OK(musaPointerGetAttributes(&attributes, memory));
    EXPECT_EQ(1, attributes.device);
  }
  EXPECT_EQ(0, c10::musa::current_device());
  EXPECT_THROW(device.malloc(size_t{1} << 40, stream), c10::OutOfMemoryError);
  EXPECT_EQ(0, c10::musa::current_device());
  EXPECT_EQ(0u, musaEmulatorLiveAllocations(0));
  EXPECT_TRUE(device.free(small));
  EXPECT_TRUE(device.free(large));
  device.empty_cache({0, 0});
  EXPECT_EQ(0, c10::musa::current_device());
}

TEST_F(AllocatorTest, AnAllocationFromTheCacheMakesNoSdkCall) {
  allocator::DeviceCachingAllocator device(1);
  const musaStream_t stream = c10::musa::getDefaultMUSAStream(1).stream();
  constexpr std::array<size_t, 4> kSizes{1, 4096, 1 << 20, 30 << 20};
  for (const size_t size : kSizes) {
    device.free(device.malloc(size, stream)); // allocates the segment
  }
  const auto calls = musaEmulatorCallCount();
  for (const size_t size : kSizes) {
    void* const memory = device.malloc(size, stream);
    EXPECT_EQ(calls, musaEmulatorCallCount()) << size;
    EXPECT_TRUE(device.free(memory));
    EXPECT_EQ(calls, musaEmulatorCallCount()) << size;
  }
  device.empty_cache({0, 0});
  EXPECT_LT(calls, musaEmulatorCallCount());
}

TEST_F(AllocatorTest, EveryAllocationIsCounted) {
  const DeviceStats before = allocator::getDeviceStats(0);
  constexpr int kPairs = 1000;
  on_threads([](int t) {
    for (int i = 0; i < kPairs; ++i) {
      allocator::raw_delete(allocator::raw_alloc(100 * (static_cast<size_t>(t) + 1))); // 512 bytes each
    }
  });
  const DeviceStats after = allocator::getDeviceStats(0);
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

// Compares the values that a Figure derives with c10's own statistic, which stores them.
TEST(AllocatorStatistics, AFigureReadsAsAStatArrayThatSawTheSameEvents) {
  using c10::CachingAllocator::StatType;
  allocator::Figure figure;
  c10::CachingAllocator::StatArray expected{};
  std::minstd_rand random(3);
  for (int step = 0; step < 2000; ++step) {
    const StatType pool = random() % 2 == 0 ? StatType::SMALL_POOL : StatType::LARGE_POOL;
    const size_t amount = random() % 1000;
    const unsigned action = random() % 32;
    auto& part = expected[static_cast<size_t>(pool)];
    if (action == 0) {
      figure.reset_peak();
      std::for_each(expected.begin(), expected.end(), [](auto& stat) { stat.reset_peak(); });
    } else if (action == 1) {
      figure.reset_accumulated();
      std::for_each(expected.begin(), expected.end(), [](auto& stat) { stat.reset_accumulated(); });
    } else if (action % 2 == 0) {
      figure.change(pool, static_cast<int64_t>(amount));
      part.increase(amount);
      expected[0].increase(amount);
    } else {
      const size_t taken = std::min(amount, static_cast<size_t>(part.current));
      figure.change(pool, -static_cast<int64_t>(taken));
      part.decrease(taken);
      expected[0].decrease(taken);
    }
    const auto read = figure.read();
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(expected[i].current, read[i].current) << step;
      ASSERT_EQ(expected[i].peak, read[i].peak) << step;
      ASSERT_EQ(expected[i].allocated, read[i].allocated) << step;
      ASSERT_EQ(expected[i].freed, read[i].freed) << step;
    }
    ASSERT_EQ(expected[0].current, figure.current());
  }
}

TEST_F(AllocatorTest, PointersThatAreNoAllocationAreRefused) {
  void* memory = allocator::raw_alloc(1000);
  EXPECT_THROW(allocator::raw_delete(static_cast<char*>(memory) + 512), c10::Error);
  allocator::raw_delete(memory);
  EXPECT_THROW(allocator::raw_delete(memory), c10::Error);
  EXPECT_THROW(allocator::raw_alloc(size_t{1} << 50), c10::OutOfMemoryError);
  EXPECT_EQ(nullptr, allocator::raw_alloc(0));
}
