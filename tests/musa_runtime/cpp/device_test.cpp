// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Devices, guards, the stream pool and events, from many threads.
#include <set>

#include "runtime_test.h"

class DeviceTest : public RuntimeTest {};

TEST_F(DeviceTest, EachThreadHasACurrentDeviceOfItsOwn) {
  on_threads([](int t) {
    std::minstd_rand random(static_cast<unsigned>(t) + 1);
    EXPECT_EQ(0, c10::musa::current_device());
    for (int i = 0; i < 300; ++i) {
      const auto device = static_cast<DeviceIndex>(random() % kDevices);
      c10::musa::set_device(device);
      std::this_thread::yield();
      ASSERT_EQ(device, c10::musa::current_device());
      const auto next = static_cast<DeviceIndex>(random() % kDevices);
      ASSERT_EQ(device, c10::musa::ExchangeDevice(next));
      ASSERT_EQ(next, c10::musa::MaybeExchangeDevice(-1));
    }
  });
}

TEST_F(DeviceTest, GuardsNestAndRestoreWhenAnExceptionPasses) {
  on_threads([](int) {
    for (int i = 0; i < 100; ++i) {
      try {
        const MUSAGuard outer(1);
        const MUSAStream stream = c10::musa::getStreamFromPool(false, 0);
        const MUSAStreamGuard inner(stream);
        ASSERT_EQ(0, c10::musa::current_device());
        ASSERT_EQ(stream, c10::musa::getCurrentMUSAStream());
        throw std::runtime_error("passing through");
      } catch (const std::runtime_error&) {}
      ASSERT_EQ(0, c10::musa::current_device());
      ASSERT_EQ(0, c10::musa::getCurrentMUSAStream(0).id());
    }
  });
}

TEST_F(DeviceTest, GuardRestoresInSpiteOfAPassingFailure) {
  {
    const MUSAGuard guard(1);
    EXPECT_OK(musaEmulatorFailNext("musaSetDevice", musaErrorUnknown));
  }
  EXPECT_EQ(0, c10::musa::current_device());
  EXPECT_OK(musaEmulatorFailNext("musaSetDevice", musaErrorUnknown));
  EXPECT_THROW(MUSAGuard(1), c10::Error);
  EXPECT_EQ(0, c10::musa::current_device());
}

TEST_F(DeviceTest, DevicesThatDoNotExistAreNamed) {
  for (const int index : {2, 63, 127}) {
    try {
      c10::musa::set_device(static_cast<DeviceIndex>(index));
      ADD_FAILURE() << index << " was accepted";
    } catch (const c10::Error& error) {
      EXPECT_NE(std::string::npos, error.msg().find("Invalid device musa:" + std::to_string(index)));
    }
  }
}

TEST_F(DeviceTest, PoolHandsOutEveryStreamInTurnAndCreatesEachOnce) {
  constexpr int kPool = 32;
  std::mutex mutex;
  std::map<c10::StreamId, int> turns;
  std::map<c10::StreamId, std::set<musaStream_t>> handles;
  on_threads([&](int) {
    for (int i = 0; i < kPool; ++i) {
      const MUSAStream stream = c10::musa::getStreamFromPool(true, 1);
      const musaStream_t handle = stream.stream();
      EXPECT_FALSE(stream.priority() == 0);
      const std::lock_guard lock(mutex);
      ++turns[stream.id()];
      handles[stream.id()].insert(handle);
    }
  });
  EXPECT_EQ(static_cast<size_t>(kPool), turns.size());
  std::set<musaStream_t> distinct;
  for (const auto& [id, count] : turns) {
    EXPECT_EQ(kThreads, count) << "stream " << id;
    EXPECT_EQ(1u, handles[id].size()) << "stream " << id << " has several handles";
    distinct.insert(*handles[id].begin());
  }
  EXPECT_EQ(static_cast<size_t>(kPool), distinct.size());
}

TEST_F(DeviceTest, StreamThatTheSdkRefusesIsMadeByTheNextUse) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP()
      << "the thread sanitizer's pthread_once keeps a call_once that threw locked for ever; the C library's does not";
#endif
  const MUSAStream stream = c10::musa::getStreamFromPool(true, 0);
  EXPECT_OK(musaEmulatorFailNext("musaStreamCreateWithPriority", musaErrorUnknown));
  EXPECT_THROW(stream.stream(), c10::Error);
  EXPECT_NE(nullptr, stream.stream());
}

TEST_F(DeviceTest, CurrentStreamBelongsToTheThread) {
  const MUSAStream mine = c10::musa::getStreamFromPool();
  c10::musa::setCurrentMUSAStream(mine);
  on_threads([&](int) {
    EXPECT_EQ(0, c10::musa::getCurrentMUSAStream().id());
    const MUSAStream theirs = c10::musa::getStreamFromPool();
    c10::musa::setCurrentMUSAStream(theirs);
    EXPECT_EQ(theirs, c10::musa::getCurrentMUSAStream());
  });
  EXPECT_EQ(mine, c10::musa::getCurrentMUSAStream());
}

TEST_F(DeviceTest, EventsOrderStreamsOfTwoDevices) {
  on_threads([](int) {
    const std::array<MUSAStream, 2> streams{
        c10::musa::getStreamFromPool(false, 0), c10::musa::getStreamFromPool(false, 1)};
    std::array<MUSAEvent, 2> events;
    int value = 0; // not atomic: the events order the accesses
    for (int i = 0; i < 50; ++i) {
      const size_t here = i % 2;
      events[1 - here].block(streams[here]);
      EXPECT_OK(musaLaunchHostFunc(streams[here].stream(), [](void* data) { ++*static_cast<int*>(data); }, &value));
      events[here].record(streams[here]);
    }
    events[1].synchronize();
    EXPECT_EQ(50, value);
    EXPECT_TRUE(events[1].query());
  });
}

TEST_F(DeviceTest, EventsMoveAndEndWithTheirOwner) {
  const size_t before = musaEmulatorLiveEvents();
  {
    MUSAEvent first(musaEventDefault);
    EXPECT_TRUE(first.query());
    EXPECT_EQ(before, musaEmulatorLiveEvents()); // the event is created by the first record
    first.record();
    MUSAEvent second(std::move(first));
    EXPECT_FALSE(first.isCreated()); // NOLINT: a moved-from event is an empty one
    first = std::move(second);
    EXPECT_EQ(before + 1, musaEmulatorLiveEvents());
    MUSAEvent end(musaEventDefault);
    end.record();
    end.synchronize();
    EXPECT_GE(first.elapsed_time(end), 0.0f);
    EXPECT_THROW(first.record(c10::musa::getDefaultMUSAStream(1)), c10::Error);
    MUSAEvent untimed;
    untimed.record();
    EXPECT_THROW(untimed.elapsed_time(end), c10::Error);
  }
  EXPECT_EQ(before, musaEmulatorLiveEvents());
}
