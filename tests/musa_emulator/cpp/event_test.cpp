// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "emulator_test.h"

class EventTest : public EmulatorTest {};

TEST_F(EventTest, AnEventNeverRecordedIsComplete) {
  const Event event;
  EXPECT_OK(musaEventQuery(event));
  EXPECT_OK(musaEventSynchronize(event));
  const Stream stream;
  EXPECT_OK(musaStreamWaitEvent(stream, event, 0));
}

TEST_F(EventTest, RecordMarksThePointInTheStream) {
  const Stream stream;
  const Event event;
  Journal journal;
  Blocker blocker(stream);
  journal.append_on(stream, 1);
  EXPECT_OK(musaEventRecord(event, stream));
  journal.append_on(stream, 2);
  EXPECT_STATUS(musaErrorNotReady, musaEventQuery(event));
  blocker.release();
  EXPECT_OK(musaEventSynchronize(event));
  const std::vector<int> entries = journal.entries();
  ASSERT_FALSE(entries.empty());
  EXPECT_EQ(1, entries[0]);
  EXPECT_OK(musaEventQuery(event));
  EXPECT_OK(musaStreamSynchronize(stream));
}

TEST_F(EventTest, PollingAnEventEndsInEveryMode) {
  const Stream stream;
  const Event event(musaEventDisableTiming);
  Journal journal;
  for (int i = 0; i < 5; ++i) {
    journal.append_on(stream, i);
  }
  EXPECT_OK(musaEventRecord(event, stream));
  int polls = 0;
  while (musaEventQuery(event) == musaErrorNotReady) {
    ASSERT_LT(++polls, 10'000'000);
    std::this_thread::yield();
  }
  EXPECT_EQ(5u, journal.entries().size());
}

TEST_F(EventTest, WaitOrdersStreams) {
  const Stream first;
  const Stream second;
  const Event event(musaEventDisableTiming);
  Journal journal;
  Blocker blocker(first);
  journal.append_on(first, 1);
  EXPECT_OK(musaEventRecord(event, first));
  EXPECT_OK(musaStreamWaitEvent(second, event, 0));
  journal.append_on(second, 2);
  EXPECT_TRUE(journal.entries().empty());
  EXPECT_STATUS(musaErrorNotReady, musaStreamQuery(second));
  blocker.release();
  EXPECT_OK(musaStreamSynchronize(second));
  EXPECT_EQ((std::vector<int>{1, 2}), journal.entries());
}

TEST_F(EventTest, WaitMeansTheRecordAtTheTimeOfTheCall) {
  const Stream first;
  const Stream second;
  const Event event(musaEventDisableTiming);
  Journal journal;
  EXPECT_OK(musaEventRecord(event, first));
  EXPECT_OK(musaStreamWaitEvent(second, event, 0));
  Blocker blocker(first);
  EXPECT_OK(musaEventRecord(event, first)); // a later record does not delay the earlier wait
  journal.append_on(second, 1);
  EXPECT_OK(musaStreamSynchronize(second));
  EXPECT_EQ(std::vector<int>{1}, journal.entries());
  blocker.release();
  EXPECT_OK(musaStreamSynchronize(first));
}

TEST_F(EventTest, WaitAcrossDevices) {
  const Stream first;
  const Event event(musaEventDisableTiming);
  EXPECT_OK(musaSetDevice(1));
  const Stream second;
  Journal journal;
  Blocker blocker(first);
  journal.append_on(first, 1);
  EXPECT_OK(musaEventRecord(event, first));
  EXPECT_OK(musaStreamWaitEvent(second, event, 0));
  journal.append_on(second, 2);
  blocker.release();
  EXPECT_OK(musaStreamSynchronize(second));
  EXPECT_EQ((std::vector<int>{1, 2}), journal.entries());
  EXPECT_OK(musaStreamSynchronize(first));
}

TEST_F(EventTest, RecordingOnAnotherDevicesStreamIsRefused) {
  const Event event;
  EXPECT_OK(musaSetDevice(1));
  const Stream stream;
  EXPECT_STATUS(musaErrorInvalidResourceHandle, musaEventRecord(event, stream));
}

TEST_F(EventTest, ElapsedTimeMeasuresTheWorkBetween) {
  const Stream stream;
  const Event start;
  const Event end;
  float ms = -1;
  EXPECT_STATUS(musaErrorInvalidResourceHandle, musaEventElapsedTime(&ms, start, end)) << "not recorded";
  EXPECT_OK(musaEventRecord(start, stream));
  EXPECT_OK(
      musaLaunchHostFunc(stream, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }, nullptr));
  EXPECT_OK(musaEventRecord(end, stream));
  EXPECT_OK(musaEventSynchronize(end));
  EXPECT_OK(musaEventElapsedTime(&ms, start, end));
  EXPECT_GE(ms, 19.0F);
  EXPECT_LT(ms, 2000.0F);
  const Event untimed(musaEventDisableTiming);
  EXPECT_OK(musaEventRecord(untimed, stream));
  EXPECT_STATUS(musaErrorInvalidResourceHandle, musaEventElapsedTime(&ms, start, untimed));
  EXPECT_OK(musaStreamSynchronize(stream));
}

TEST_F(EventTest, ElapsedTimeOfUnfinishedWorkIsNotReady) {
  const Stream stream;
  const Event start;
  const Event end;
  float ms = 0;
  Blocker blocker(stream);
  EXPECT_OK(musaEventRecord(start, stream));
  EXPECT_OK(musaEventRecord(end, stream));
  EXPECT_STATUS(musaErrorNotReady, musaEventElapsedTime(&ms, start, end));
  blocker.release();
  EXPECT_OK(musaStreamSynchronize(stream));
}

TEST_F(EventTest, DestroyWithARecordInFlight) {
  const Stream stream;
  musaEvent_t event = nullptr;
  Blocker blocker(stream);
  ASSERT_OK(musaEventCreate(&event));
  EXPECT_OK(musaEventRecord(event, stream));
  EXPECT_OK(musaEventDestroy(event));
  EXPECT_STATUS(musaErrorInvalidResourceHandle, musaEventQuery(event));
  EXPECT_STATUS(musaErrorInvalidResourceHandle, musaEventDestroy(event));
  blocker.release();
  EXPECT_OK(musaStreamSynchronize(stream));
}

TEST_F(EventTest, BadFlags) {
  musaEvent_t event = nullptr;
  EXPECT_STATUS(musaErrorInvalidValue, musaEventCreateWithFlags(&event, 0x100));
  EXPECT_STATUS(musaErrorInvalidValue, musaEventCreateWithFlags(&event, musaEventInterprocess))
      << "interprocess events cannot be timed";
  EXPECT_STATUS(musaErrorInvalidResourceHandle, musaEventRecord(nullptr, nullptr));
}
