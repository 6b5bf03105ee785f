// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// State on the host: page-locked memory and the state of the random generator.
#include <ATen/musa/MUSAGeneratorImpl.h>

#include <cstring>

#include "runtime_test.h"

namespace {

class PinnedMemoryTest : public RuntimeTest {};
class GeneratorTest : public RuntimeTest {};

at::MUSAGeneratorImpl& impl(const at::Generator& generator) {
  return *static_cast<at::MUSAGeneratorImpl*>(generator.unsafeGetGeneratorImpl());
}

} // namespace

TEST_F(PinnedMemoryTest, CopiesInFlightKeepTheirSource) {
  constexpr size_t kSize = 20'000;
  constexpr int kCopies = 30;
  on_threads([](int t) {
    at::HostAllocator* const pinned = at::musa::getPinnedMemoryAllocator();
    const auto device = static_cast<DeviceIndex>(t % kDevices);
    const MUSAGuard guard(device);
    const MUSAStream stream = c10::musa::getStreamFromPool(false, device);
    std::vector<void*> copies;
    for (int i = 0; i < kCopies; ++i) {
      const c10::DataPtr source = pinned->allocate(kSize);
      EXPECT_TRUE(at::musa::isPinnedPtr(static_cast<char*>(source.get()) + 100));
      std::memset(source.get(), t * kCopies + i, kSize);
      copies.push_back(allocator::raw_alloc_with_stream(kSize, stream.stream()));
      EXPECT_OK(musaMemcpyAsync(copies.back(), source.get(), kSize, musaMemcpyHostToDevice, stream.stream()));
      EXPECT_TRUE(pinned->record_event(source.get(), source.get_context(), stream.unwrap()));
      // Freed here and overwritten in the next iteration, so the allocator must wait for the copy.
    }
    for (int i = 0; i < kCopies; ++i) {
      std::vector<unsigned char> back(kSize);
      EXPECT_OK(musaMemcpyAsync(back.data(), copies[i], kSize, musaMemcpyDeviceToHost, stream.stream()));
      stream.synchronize();
      EXPECT_EQ(std::vector<unsigned char>(kSize, static_cast<unsigned char>(t * kCopies + i)), back);
      allocator::raw_delete(copies[i]);
    }
  });
}

TEST_F(PinnedMemoryTest, ThreadsAllocateWhileTheCacheIsEmptied) {
  on_threads([](int t) {
    at::HostAllocator* const pinned = at::musa::getPinnedMemoryAllocator();
    std::minstd_rand random(static_cast<unsigned>(t) + 1);
    std::vector<c10::DataPtr> held;
    for (int i = 0; i < 100; ++i) {
      held.push_back(pinned->allocate(1 + random() % 100'000));
      std::memset(held.back().get(), t, 1);
      if (random() % 3 == 0) {
        held.erase(held.begin() + static_cast<long>(random() % held.size()));
      }
      if (t == 0 && i % 10 == 0) {
        pinned->empty_cache();
        EXPECT_GE(pinned->get_stats().active_requests.current, 0);
      }
    }
    for (const c10::DataPtr& block : held) {
      EXPECT_EQ(t, *static_cast<const char*>(block.get()));
    }
  });
}

TEST_F(PinnedMemoryTest, ExhaustedHostMemoryIsToldAndPasses) {
  at::HostAllocator* const pinned = at::musa::getPinnedMemoryAllocator();
  pinned->empty_cache();
  EXPECT_OK(musaEmulatorFailNext("musaHostAlloc", musaErrorMemoryAllocation));
  EXPECT_NO_THROW(pinned->allocate(5000)) << "an empty cache removes one refusal";
  pinned->empty_cache();
  EXPECT_OK(musaEmulatorFailNth("musaHostAlloc", 1, musaErrorUnknown));
  EXPECT_THROW(pinned->allocate(5000), c10::Error);
  EXPECT_NE(nullptr, pinned->allocate(5000).get());
}

TEST_F(GeneratorTest, ThreadsDrawFromDisjointRanges) {
  at::Generator generator = at::musa::detail::createMUSAGenerator(0);
  constexpr int kDraws = 200;
  std::array<std::vector<uint64_t>, kThreads> offsets;
  on_threads([&](int t) {
    for (int i = 0; i < kDraws; ++i) {
      const std::lock_guard<std::mutex> lock(generator.mutex());
      offsets[t].push_back(impl(generator).philox_engine_inputs(3).second); // 3 is rounded up to 4
    }
  });
  std::vector<uint64_t> all;
  for (const auto& part : offsets) {
    EXPECT_TRUE(std::is_sorted(part.begin(), part.end()));
    all.insert(all.end(), part.begin(), part.end());
  }
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(4 * i, all[i]);
  }
}

TEST_F(GeneratorTest, StateIsSavedAndRestoredWhileOthersDraw) {
  at::Generator generator = at::musa::detail::createMUSAGenerator(1);
  {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(42);
  }
  on_threads([&](int t) {
    for (int i = 0; i < 50; ++i) {
      const std::lock_guard<std::mutex> lock(generator.mutex());
      if (t % 2 == 0) {
        impl(generator).philox_engine_inputs(4);
        continue;
      }
      const auto state = impl(generator).get_state();
      const uint64_t offset = impl(generator).get_offset();
      impl(generator).philox_engine_inputs(400);
      impl(generator).set_state(*state);
      EXPECT_EQ(42u, generator.current_seed());
      EXPECT_EQ(offset, impl(generator).get_offset());
      const auto copy = generator.clone();
      impl(copy).set_offset(0);
      EXPECT_EQ(offset, impl(generator).get_offset()) << "a clone shares the state of its origin";
    }
  });
  EXPECT_EQ(2u * 50 * 4, impl(generator).get_offset());
}
