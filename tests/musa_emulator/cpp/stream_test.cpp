// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "emulator_test.h"

class StreamTest : public EmulatorTest {};

TEST_F(StreamTest, WorkRunsInOrder) {
  const Stream stream;
  Journal journal;
  std::vector<int> expected;
  for (int i = 0; i < 100; ++i) {
    journal.append_on(stream, i);
    expected.push_back(i);
  }
  EXPECT_OK(musaStreamSynchronize(stream));
  EXPECT_EQ(expected, journal.entries());
}

TEST_F(StreamTest, NothingRunsInLazyModeUntilSomethingWaits) {
  if (!mode_is("lazy")) {
    configure({{"MUSA_EMULATOR_MODE", "lazy"}});
  }
  const Stream first;
  const Stream second;
  Journal journal;
  journal.append_on(first, 1);
  journal.append_on(second, 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(journal.entries().empty());
  EXPECT_OK(musaStreamSynchronize(second));
  EXPECT_EQ(std::vector<int>{2}, journal.entries()) << "only what was waited for";
  EXPECT_OK(musaDeviceSynchronize());
  EXPECT_EQ((std::vector<int>{2, 1}), journal.entries());
}

TEST_F(StreamTest, AFullStreamMakesLaunchesWait) {
  constexpr int many = 3000;
  constexpr int room = 1024;
  const Stream stream;
  std::atomic<int> launched = 0;
  std::atomic<int> ran = 0;
  Blocker blocker(stream);
  std::thread launcher([&] {
    for (; launched < many; ++launched) {
      EXPECT_OK(musaLaunchHostFunc(stream, [](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &ran));
    }
  });
  if (mode_is("lazy")) { // the launching thread runs work to free space
    launcher.join();
    EXPECT_GE(ran, many - room - 1);
    EXPECT_LT(ran, many);
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_LE(launched, room + 1);
    EXPECT_EQ(0, ran);
    blocker.release();
    launcher.join();
  }
  EXPECT_OK(musaStreamSynchronize(stream));
  EXPECT_EQ(many, ran);
}

TEST_F(StreamTest, PollingEndsInEveryMode) {
  const Stream stream;
  Journal journal;
  for (int i = 0; i < 10; ++i) {
    journal.append_on(stream, i);
  }
  int polls = 0;
  musaError_t status = musaErrorNotReady;
  while ((status = musaStreamQuery(stream)) == musaErrorNotReady) {
    ASSERT_LT(++polls, 10'000'000);
    std::this_thread::yield();
  }
  EXPECT_OK(status);
  EXPECT_EQ(10u, journal.entries().size());
}

TEST_F(StreamTest, QueryCountsTheRunningOperation) {
  const Stream stream;
  EXPECT_OK(musaStreamQuery(stream));
  Blocker blocker(stream);
  EXPECT_STATUS(musaErrorNotReady, musaStreamQuery(stream));
  EXPECT_STATUS(musaErrorNotReady, musaGetLastError());
  blocker.release();
  EXPECT_OK(musaStreamSynchronize(stream));
  EXPECT_OK(musaStreamQuery(stream));
}

TEST_F(StreamTest, StreamsDoNotWaitForEachOther) {
  const Stream busy;
  const Stream free;
  Journal journal;
  Blocker blocker(busy);
  journal.append_on(busy, 1);
  journal.append_on(free, 2);
  EXPECT_OK(musaStreamSynchronize(free));
  EXPECT_EQ(std::vector<int>{2}, journal.entries());
  blocker.release();
  EXPECT_OK(musaStreamSynchronize(busy));
}

TEST_F(StreamTest, TheDefaultStreamWaitsForBlockingStreams) {
  const Stream blocking(musaStreamDefault);
  Journal journal;
  Blocker blocker(blocking);
  journal.append_on(blocking, 1);
  journal.append_on(0, 2);
  EXPECT_TRUE(journal.entries().empty());
  blocker.release();
  EXPECT_OK(musaStreamSynchronize(0));
  EXPECT_EQ((std::vector<int>{1, 2}), journal.entries());
}

TEST_F(StreamTest, BlockingStreamsWaitForTheDefaultStream) {
  const Stream blocking(musaStreamDefault);
  Journal journal;
  Blocker blocker(0);
  journal.append_on(musaStreamLegacy, 1);
  journal.append_on(blocking, 2);
  EXPECT_STATUS(musaErrorNotReady, musaStreamQuery(blocking));
  blocker.release();
  EXPECT_OK(musaStreamSynchronize(blocking));
  EXPECT_EQ((std::vector<int>{1, 2}), journal.entries());
}

TEST_F(StreamTest, NonBlockingStreamsIgnoreTheDefaultStream) {
  const Stream stream(musaStreamNonBlocking);
  Journal journal;
  Blocker blocker(0);
  journal.append_on(stream, 1);
  EXPECT_OK(musaStreamSynchronize(stream));
  EXPECT_EQ(std::vector<int>{1}, journal.entries());
  blocker.release();
  EXPECT_OK(musaDeviceSynchronize());
}

TEST_F(StreamTest, DefaultStreamsOfDevicesAreIndependent) {
  Journal journal;
  Blocker blocker(0);
  EXPECT_OK(musaSetDevice(1));
  journal.append_on(0, 1);
  EXPECT_OK(musaDeviceSynchronize());
  EXPECT_EQ(std::vector<int>{1}, journal.entries());
  EXPECT_OK(musaSetDevice(0));
  blocker.release();
  EXPECT_OK(musaDeviceSynchronize());
}

TEST_F(StreamTest, PerThreadStreamsAreThreadsOwn) {
  unsigned long long mine = 0;
  unsigned long long theirs = 0;
  EXPECT_OK(musaStreamGetId(musaStreamPerThread, &mine));
  std::thread([&theirs] {
    EXPECT_OK(musaStreamGetId(musaStreamPerThread, &theirs));
    Journal journal;
    journal.append_on(musaStreamPerThread, 1);
    EXPECT_OK(musaStreamSynchronize(musaStreamPerThread));
    EXPECT_EQ(std::vector<int>{1}, journal.entries());
  }).join();
  EXPECT_NE(mine, theirs);
}

TEST_F(StreamTest, DestroyedStreamsFinishTheirWork) {
  Journal journal;
  musaStream_t stream = nullptr;
  ASSERT_OK(musaStreamCreateWithFlags(&stream, musaStreamNonBlocking));
  Blocker blocker(stream);
  journal.append_on(stream, 1);
  EXPECT_OK(musaStreamDestroy(stream));
  EXPECT_EQ(0u, musaEmulatorLiveStreams());
  EXPECT_STATUS(musaErrorInvalidResourceHandle, musaStreamSynchronize(stream)) << "the handle is gone";
  EXPECT_STATUS(musaErrorInvalidResourceHandle, musaStreamDestroy(stream));
  blocker.release();
  EXPECT_OK(musaDeviceSynchronize());
  EXPECT_EQ(std::vector<int>{1}, journal.entries());
}

TEST_F(StreamTest, BadArguments) {
  musaStream_t stream = nullptr;
  EXPECT_STATUS(musaErrorInvalidValue, musaStreamCreate(nullptr));
  EXPECT_STATUS(musaErrorInvalidValue, musaStreamCreateWithFlags(&stream, 0x40));
  EXPECT_STATUS(musaErrorInvalidResourceHandle, musaStreamDestroy(nullptr));
  EXPECT_STATUS(musaErrorInvalidValue, musaLaunchHostFunc(0, nullptr, nullptr));
}

TEST_F(StreamTest, PrioritiesAreClampedAndReported) {
  musaStream_t stream = nullptr;
  ASSERT_OK(musaStreamCreateWithPriority(&stream, musaStreamNonBlocking, -100));
  int greatest = 0;
  int priority = 0;
  unsigned flags = 0;
  EXPECT_OK(musaDeviceGetStreamPriorityRange(nullptr, &greatest));
  EXPECT_OK(musaStreamGetPriority(stream, &priority));
  EXPECT_EQ(greatest, priority);
  EXPECT_OK(musaStreamGetFlags(stream, &flags));
  EXPECT_EQ(unsigned{musaStreamNonBlocking}, flags);
  EXPECT_OK(musaStreamDestroy(stream));
}

TEST_F(StreamTest, HostFunctionsMayNotCallTheRuntime) {
  const Stream stream;
  std::vector<musaError_t> results;
  EXPECT_OK(musaLaunchHostFunc(
      stream,
      [](void* out) {
        void* pointer = nullptr;
        auto& collected = *static_cast<std::vector<musaError_t>*>(out);
        collected = {
            musaMalloc(&pointer, 8), musaDeviceSynchronize(), musaStreamQuery(0),
            musaLaunchHostFunc(0, nullptr, nullptr)};
      },
      &results));
  EXPECT_OK(musaStreamSynchronize(stream));
  EXPECT_EQ(std::vector<musaError_t>(4, musaErrorNotPermitted), results);
  void* pointer = nullptr;
  EXPECT_OK(musaMalloc(&pointer, 8)) << "the ban ends with the function";
  EXPECT_OK(musaFree(pointer));
  musaGetLastError();
}

TEST_F(StreamTest, CallbacksReceiveStreamAndStatus) {
  const Stream stream;
  struct Seen {
    musaStream_t stream = nullptr;
    musaError_t status = musaErrorUnknown;
  } seen;
  EXPECT_OK(musaStreamAddCallback(
      stream, [](musaStream_t s, musaError_t status, void* out) { *static_cast<Seen*>(out) = {s, status}; }, &seen, 0));
  EXPECT_OK(musaStreamSynchronize(stream));
  EXPECT_EQ(stream.handle, seen.stream);
  EXPECT_OK(seen.status);
  EXPECT_STATUS(musaErrorInvalidValue, musaStreamAddCallback(stream, nullptr, nullptr, 0));
}

TEST_F(StreamTest, AttributesAreKnownOrRefused) {
  const Stream stream;
  musaStreamAttrValue value = {};
  value.accessPolicyWindow.num_bytes = 4096;
  EXPECT_OK(musaStreamSetAttribute(stream, musaStreamAttributeAccessPolicyWindow, &value));
  EXPECT_OK(musaStreamSetAttribute(stream, musaStreamAttributeSynchronizationPolicy, &value));
  EXPECT_STATUS(musaErrorInvalidValue, musaStreamSetAttribute(stream, musaStreamAttributeAccessPolicyWindow, nullptr));
  EXPECT_STATUS(musaErrorInvalidValue, musaStreamSetAttribute(stream, musaLaunchAttributePriority, &value));
}

TEST_F(StreamTest, LaunchBlockingWaitsForKernels) {
  configure({{"MUSA_LAUNCH_BLOCKING", "1"}});
  const Stream stream;
  std::atomic<bool> ran{false};
  EXPECT_OK(musaEmulatorLaunchTask(
      stream, "t", [](void* flag) { return static_cast<std::atomic<bool>*>(flag)->store(true), musaSuccess; }, &ran,
      nullptr));
  EXPECT_TRUE(ran.load());
}

TEST_F(StreamTest, TasksMaySubmitButNotWait) {
  const Stream stream;
  const Stream other;
  struct Context {
    musaStream_t stream;
    musaStream_t other;
    Journal journal;
    musaError_t wait = musaSuccess;
    void* memory = nullptr;
  } context{stream, other, {}, musaSuccess, nullptr};
  EXPECT_OK(musaEmulatorLaunchTask(
      stream, "outer",
      [](void* data) {
        auto& c = *static_cast<Context*>(data);
        c.wait = musaStreamSynchronize(c.stream);
        c.journal.append_on(c.stream, 2);
        c.journal.append_on(c.other, 3);
        c.journal.append(1);
        return musaMalloc(&c.memory, 64);
      },
      &context, nullptr));
  EXPECT_OK(musaStreamSynchronize(stream));
  EXPECT_OK(musaDeviceSynchronize());
  EXPECT_STATUS(musaErrorNotPermitted, context.wait);
  const std::vector<int> entries = context.journal.entries();
  EXPECT_EQ(3u, entries.size());
  EXPECT_LT(std::find(entries.begin(), entries.end(), 1), std::find(entries.begin(), entries.end(), 2))
      << "work of the same stream follows the task that submitted it";
  EXPECT_OK(musaFree(context.memory));
}
