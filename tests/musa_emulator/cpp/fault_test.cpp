// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "emulator_test.h"

class FaultTest : public EmulatorTest {};

TEST_F(FaultTest, TheNthCallFailsOnceAndDoesNothing) {
  EXPECT_OK(musaEmulatorFailNth("musaMalloc", 2, musaErrorMemoryAllocation));
  void* a = nullptr;
  void* b = nullptr;
  EXPECT_OK(musaMalloc(&a, 64));
  EXPECT_STATUS(musaErrorMemoryAllocation, musaMalloc(&b, 64));
  EXPECT_EQ(nullptr, b);
  EXPECT_STATUS(musaErrorMemoryAllocation, musaGetLastError());
  EXPECT_EQ(1u, musaEmulatorLiveAllocations(0));
  EXPECT_OK(musaMalloc(&b, 64));
  EXPECT_OK(musaFree(a));
  EXPECT_OK(musaFree(b));
}

TEST_F(FaultTest, AReleasingCallReleasesAndReports) {
  void* a = nullptr;
  ASSERT_OK(musaMalloc(&a, 64));
  EXPECT_OK(musaEmulatorFailNext("musaFree", musaErrorUnknown));
  EXPECT_STATUS(musaErrorUnknown, musaFree(a));
  EXPECT_EQ(0u, musaEmulatorLiveAllocations(0));
}

TEST_F(FaultTest, AFatalCodeLosesTheDevice) {
  EXPECT_OK(musaEmulatorFailNext("musaStreamSynchronize", musaErrorIllegalAddress));
  EXPECT_STATUS(musaErrorIllegalAddress, musaStreamSynchronize(0));
  EXPECT_STATUS(musaErrorIllegalAddress, musaDeviceSynchronize());
  EXPECT_OK(musaDeviceReset());
  EXPECT_OK(musaDeviceSynchronize());
}

TEST_F(FaultTest, AnyCallByNumber) {
  EXPECT_OK(musaEmulatorFailCall(3, musaErrorUnknown));
  EXPECT_EQ(1, musaEmulatorFaultPending());
  int device = 0;
  EXPECT_OK(musaGetDevice(&device));
  EXPECT_OK(musaGetLastError()); // this call is not counted
  EXPECT_OK(musaSetDevice(0));
  EXPECT_STATUS(musaErrorUnknown, musaDeviceSynchronize());
  EXPECT_EQ(0, musaEmulatorFaultPending());
  EXPECT_OK(musaDeviceSynchronize());
}

TEST_F(FaultTest, SteeringTheEmulatorNeitherCountsNorFails) {
  EXPECT_OK(musaEmulatorFailCall(1, musaErrorUnknown));
  const auto calls = musaEmulatorCallCount();
  EXPECT_NE(nullptr, musaEmulatorMode());
  EXPECT_EQ(nullptr, musaEmulatorConfigurationError());
  EXPECT_EQ(0u, musaEmulatorLiveAllocations(0));
  EXPECT_EQ(calls, musaEmulatorCallCount());
  EXPECT_EQ(1, musaEmulatorFaultPending());
  EXPECT_OK(musaEmulatorReset());
  EXPECT_EQ(0, musaEmulatorFaultPending());
}

TEST_F(FaultTest, ClearedFaultsDoNotFire) {
  EXPECT_OK(musaEmulatorFailNext("musaDeviceSynchronize", musaErrorUnknown));
  musaEmulatorClearFaults();
  EXPECT_OK(musaDeviceSynchronize());
}

TEST_F(FaultTest, BadRequestsAreRefused) {
  EXPECT_STATUS(musaErrorInvalidValue, musaEmulatorFailNext("musaNoSuchCall", musaErrorUnknown));
  EXPECT_STATUS(musaErrorInvalidValue, musaEmulatorFailNext(nullptr, musaErrorUnknown));
  EXPECT_STATUS(musaErrorInvalidValue, musaEmulatorFailNth("musaMalloc", 0, musaErrorUnknown));
  EXPECT_STATUS(musaErrorInvalidValue, musaEmulatorFailNext("musaMalloc", musaSuccess));
  EXPECT_STATUS(musaErrorInvalidValue, musaEmulatorFailCall(0, musaErrorUnknown));
}

TEST_F(FaultTest, TheEnvironmentArmsFaults) {
  configure({{"MUSA_EMULATOR_FAIL", "musaMalloc@2=musaErrorMemoryAllocation;musaDeviceSynchronize=musaErrorUnknown"}});
  void* a = nullptr;
  void* b = nullptr;
  EXPECT_OK(musaMalloc(&a, 64));
  EXPECT_STATUS(musaErrorMemoryAllocation, musaMalloc(&b, 64));
  EXPECT_STATUS(musaErrorUnknown, musaDeviceSynchronize());
  EXPECT_OK(musaDeviceSynchronize());
  EXPECT_OK(musaFree(a));
}

TEST_F(FaultTest, UnreadableFaultsAreExplained) {
  for (const char* bad :
       {"musaMalloc", "musaMalloc@x=musaErrorUnknown", "musaMalloc@0=musaErrorUnknown", "musaMalloc@1=musaErrorOops",
        "noSuchCall@1=musaErrorUnknown", "musaMalloc@1=musaSuccess"}) {
    configure({{"MUSA_EMULATOR_FAIL", bad}});
    EXPECT_STATUS(musaErrorInitializationError, musaDeviceSynchronize()) << bad;
    ASSERT_NE(nullptr, musaEmulatorConfigurationError()) << bad;
    EXPECT_NE(std::string::npos, std::string(musaEmulatorConfigurationError()).find("MUSA_EMULATOR_FAIL")) << bad;
  }
}

TEST_F(FaultTest, CallsAreCountedInTotalAndByName) {
  const auto total = musaEmulatorCallCount();
  const auto queries = musaEmulatorApiCallCount("musaStreamQuery");
  for (int i = 0; i < 5; ++i) {
    EXPECT_OK(musaStreamQuery(0));
  }
  int device = 0;
  EXPECT_OK(musaGetDevice(&device));
  EXPECT_EQ(total + 6, musaEmulatorCallCount());
  EXPECT_EQ(queries + 5, musaEmulatorApiCallCount("musaStreamQuery"));
  EXPECT_EQ(0u, musaEmulatorApiCallCount("musaNoSuchCall"));
}

// The sweep that users of the emulator should write: a scenario whose n-th call fails, for every n.
TEST_F(FaultTest, EveryCallOfAScenarioCanFailWithoutALeak) {
  const auto scenario = []() -> musaError_t {
    musaStream_t stream = nullptr;
    void* memory = nullptr;
    musaError_t status = musaStreamCreate(&stream);
    if (status == musaSuccess) {
      status = musaMalloc(&memory, 4096);
    }
    if (status == musaSuccess) {
      status = musaMemsetAsync(memory, 1, 4096, stream);
    }
    if (status == musaSuccess) {
      status = musaStreamSynchronize(stream);
    }
    if (memory != nullptr) {
      const musaError_t freed = musaFree(memory);
      status = status == musaSuccess ? freed : status;
    }
    if (stream != nullptr) {
      const musaError_t destroyed = musaStreamDestroy(stream);
      status = status == musaSuccess ? destroyed : status;
    }
    return status;
  };
  int failures = 0;
  for (unsigned long long n = 1;; ++n) {
    ASSERT_OK(musaEmulatorFailCall(n, musaErrorUnknown));
    const musaError_t status = scenario();
    const bool reached = musaEmulatorFaultPending() == 0;
    musaEmulatorClearFaults();
    EXPECT_OK(musaDeviceSynchronize());
    EXPECT_EQ(0u, musaEmulatorLiveAllocations(0)) << "call " << n;
    EXPECT_EQ(0u, musaEmulatorLiveStreams()) << "call " << n;
    if (!reached) {
      EXPECT_OK(status);
      break;
    }
    EXPECT_STATUS(musaErrorUnknown, status);
    ++failures;
  }
  EXPECT_EQ(6, failures);
}
