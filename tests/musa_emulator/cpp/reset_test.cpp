// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "emulator_test.h"

class ResetTest : public EmulatorTest {};

TEST_F(ResetTest, ReleasesEverything) {
  musaStream_t stream = nullptr;
  musaEvent_t event = nullptr;
  musaGraph_t graph = nullptr;
  void* memory = nullptr;
  void* pinned = nullptr;
  ASSERT_OK(musaStreamCreate(&stream));
  ASSERT_OK(musaEventCreate(&event));
  ASSERT_OK(musaGraphCreate(&graph, 0));
  ASSERT_OK(musaMalloc(&memory, 4096));
  ASSERT_OK(musaHostAlloc(&pinned, 4096, 0));
  std::atomic<bool> ran{false};
  EXPECT_OK(musaLaunchHostFunc(stream, [](void* flag) { static_cast<std::atomic<bool>*>(flag)->store(true); }, &ran));
  EXPECT_OK(musaSetDevice(1));
  EXPECT_OK(musaEmulatorReset());
  EXPECT_TRUE(ran.load()) << "work in flight runs to its end";
  int device = -1;
  EXPECT_OK(musaGetDevice(&device));
  EXPECT_EQ(0, device);
  EXPECT_STATUS(musaErrorInvalidResourceHandle, musaStreamSynchronize(stream));
  EXPECT_STATUS(musaErrorInvalidResourceHandle, musaEventQuery(event));
  EXPECT_STATUS(musaErrorInvalidValue, musaFree(memory));
  EXPECT_STATUS(musaErrorInvalidValue, musaGraphDestroy(graph));
}

TEST_F(ResetTest, DeviceResetReleasesThatDeviceOnly) {
  void* first = nullptr;
  void* second = nullptr;
  musaStream_t stream = nullptr;
  ASSERT_OK(musaMalloc(&first, 4096));
  ASSERT_OK(musaStreamCreate(&stream));
  ASSERT_OK(musaSetDevice(1));
  ASSERT_OK(musaMalloc(&second, 4096));
  ASSERT_OK(musaSetDevice(0));
  EXPECT_OK(musaDeviceReset());
  EXPECT_EQ(0u, musaEmulatorLiveAllocations(0));
  EXPECT_EQ(1u, musaEmulatorLiveAllocations(1));
  EXPECT_STATUS(musaErrorInvalidResourceHandle, musaStreamQuery(stream));
  EXPECT_OK(musaFree(second));
}

TEST_F(ResetTest, ModesCanBeSwitched) {
  for (const char* mode : {"lazy", "async", "inline", "async", "lazy", "inline"}) {
    configure({{"MUSA_EMULATOR_MODE", mode}});
    EXPECT_STREQ(mode, musaEmulatorMode());
    const Stream stream;
    Journal journal;
    journal.append_on(stream, 1);
    journal.append_on(0, 2);
    EXPECT_OK(musaDeviceSynchronize());
    EXPECT_EQ(2u, journal.entries().size());
  }
}
