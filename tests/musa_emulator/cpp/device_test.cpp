// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <cstring>

#include "emulator_test.h"

class DeviceTest : public EmulatorTest {};

TEST_F(DeviceTest, CountFollowsTheEnvironment) {
  int count = 0;
  EXPECT_OK(musaGetDeviceCount(&count));
  EXPECT_EQ(2, count);
  configure({{"MUSA_EMULATOR_DEVICES", "5"}});
  EXPECT_OK(musaGetDeviceCount(&count));
  EXPECT_EQ(5, count);
}

TEST_F(DeviceTest, NoDeviceIsAnErrorWithACount) {
  configure({{"MUSA_EMULATOR_DEVICES", "0"}});
  int count = 7;
  EXPECT_STATUS(musaErrorNoDevice, musaGetDeviceCount(&count));
  EXPECT_EQ(0, count);
  void* pointer = nullptr;
  EXPECT_STATUS(musaErrorNoDevice, musaMalloc(&pointer, 64));
}

TEST_F(DeviceTest, OrdinalOutOfRangeIsRefusedAndLeavesTheCurrentDevice) {
  EXPECT_OK(musaSetDevice(1));
  EXPECT_STATUS(musaErrorInvalidDevice, musaSetDevice(2));
  EXPECT_STATUS(musaErrorInvalidDevice, musaSetDevice(-1));
  int device = -1;
  EXPECT_OK(musaGetDevice(&device));
  EXPECT_EQ(1, device);
}

TEST_F(DeviceTest, CurrentDeviceBelongsToTheThread) {
  EXPECT_OK(musaSetDevice(1));
  int other = -1;
  std::thread([&other] { EXPECT_OK(musaGetDevice(&other)); }).join();
  EXPECT_EQ(0, other);
}

TEST_F(DeviceTest, LastErrorIsStoredPerThreadAndClearedByReading) {
  EXPECT_STATUS(musaErrorInvalidDevice, musaSetDevice(99));
  std::thread([] { EXPECT_OK(musaGetLastError()); }).join();
  EXPECT_OK(musaDeviceSynchronize()); // a success does not clear it
  EXPECT_STATUS(musaErrorInvalidDevice, musaPeekAtLastError());
  EXPECT_STATUS(musaErrorInvalidDevice, musaGetLastError());
  EXPECT_OK(musaGetLastError());
}

struct ArchCase {
  const char* arch;
  int major;
  int minor;
  int warp;
};

class ArchTest : public EmulatorTest, public ::testing::WithParamInterface<ArchCase> {};

TEST_P(ArchTest, PropertiesFollowTheArchitecture) {
  configure({{"MUSA_EMULATOR_ARCH", GetParam().arch}, {"MUSA_EMULATOR_MEMORY_LIMIT", "64M"}});
  musaDeviceProp p = {};
  ASSERT_OK(musaGetDeviceProperties(&p, 1));
  EXPECT_EQ(GetParam().major, p.major);
  EXPECT_EQ(GetParam().minor, p.minor);
  EXPECT_EQ(GetParam().warp, p.warpSize);
  EXPECT_EQ(size_t{64} << 20, p.totalGlobalMem);
  EXPECT_EQ(1024, p.maxThreadsPerBlock);
  EXPECT_GT(std::strlen(p.name), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Archs, ArchTest,
    ::testing::Values(ArchCase{"mp_21", 2, 1, 128}, ArchCase{"mp_22", 2, 2, 128}, ArchCase{"mp_31", 3, 1, 32}),
    [](const auto& info) { return std::string(info.param.arch); });

TEST_F(DeviceTest, AttributesAgreeWithProperties) {
  musaDeviceProp p = {};
  ASSERT_OK(musaGetDeviceProperties(&p, 0));
  const std::map<musaDeviceAttr, long> expected = {
      {musaDevAttrMaxThreadsPerBlock, p.maxThreadsPerBlock},
      {musaDevAttrWarpSize, p.warpSize},
      {musaDevAttrMultiProcessorCount, p.multiProcessorCount},
      {musaDevAttrIntegrated, p.integrated},
      {musaDevAttrComputeCapabilityMajor, p.major},
      {musaDevAttrComputeCapabilityMinor, p.minor},
      {musaDevAttrMaxSharedMemoryPerBlockOptin, static_cast<long>(p.sharedMemPerBlockOptin)},
      {musaDevAttrL2CacheSize, p.l2CacheSize},
      {musaDevAttrMaxPersistingL2CacheSize, p.persistingL2CacheMaxSize},
      {musaDevAttrMemoryPoolsSupported, 1},
      {musaDevAttrMaxAccessPolicyWindowSize, p.accessPolicyMaxWindowSize},
      {musaDevAttrDirectManagedMemAccessFromHost, p.directManagedMemAccessFromHost},
      {musaDevAttrPciBusId, p.pciBusID},
      {musaDevAttrIsMultiGpuBoard, p.isMultiGpuBoard},
  };
  for (const auto& [attribute, value] : expected) {
    int actual = -1;
    EXPECT_OK(musaDeviceGetAttribute(&actual, attribute, 0));
    EXPECT_EQ(value, actual) << "attribute " << attribute;
  }
  int value = 0;
  EXPECT_STATUS(musaErrorInvalidValue, musaDeviceGetAttribute(&value, static_cast<musaDeviceAttr>(9999), 0));
  EXPECT_STATUS(musaErrorInvalidDevice, musaDeviceGetAttribute(&value, musaDevAttrWarpSize, 7));
}

TEST_F(DeviceTest, VisibleDevicesSelectAndReorder) {
  configure({{"MUSA_EMULATOR_DEVICES", "4"}, {"MUSA_VISIBLE_DEVICES", "3, 1"}});
  int count = 0;
  EXPECT_OK(musaGetDeviceCount(&count));
  EXPECT_EQ(2, count);
  int bus[2] = {};
  EXPECT_OK(musaDeviceGetAttribute(&bus[0], musaDevAttrPciBusId, 0));
  EXPECT_OK(musaDeviceGetAttribute(&bus[1], musaDevAttrPciBusId, 1));
  EXPECT_EQ(4, bus[0]);
  EXPECT_EQ(2, bus[1]);
  EXPECT_EQ(nullptr, musaEmulatorConfigurationError());
}

TEST_F(DeviceTest, VisibleDevicesEndAtTheFirstThatDoesNotExist) {
  configure({{"MUSA_VISIBLE_DEVICES", "1,9,0"}});
  int count = 0;
  EXPECT_OK(musaGetDeviceCount(&count));
  EXPECT_EQ(1, count);
  ASSERT_NE(nullptr, musaEmulatorConfigurationError());
  EXPECT_NE(nullptr, std::strstr(musaEmulatorConfigurationError(), "device 9"));
}

TEST_F(DeviceTest, UnreadableVisibleDevicesLeaveNoneAndSayWhy) {
  for (const char* value : {"abc", "0,", "0;1", "0,0", "1.5"}) {
    configure({{"MUSA_VISIBLE_DEVICES", value}});
    int count = 5;
    EXPECT_STATUS(musaErrorNoDevice, musaGetDeviceCount(&count)) << value;
    EXPECT_EQ(0, count) << value;
    ASSERT_NE(nullptr, musaEmulatorConfigurationError()) << value;
    EXPECT_NE(nullptr, std::strstr(musaEmulatorConfigurationError(), "MUSA_VISIBLE_DEVICES")) << value;
  }
}

TEST_F(DeviceTest, NegativeOrdinalHidesWhatFollows) {
  for (const auto& [value, expected] : std::map<std::string, int>{{"-1", 0}, {"-0", 0}, {"1,-1,0", 1}}) {
    configure({{"MUSA_VISIBLE_DEVICES", value}});
    int count = -1;
    EXPECT_STATUS(expected != 0 ? musaSuccess : musaErrorNoDevice, musaGetDeviceCount(&count)) << value;
    EXPECT_EQ(expected, count) << value;
  }
}

TEST_F(DeviceTest, RefusedSettingsAreNamedAndStopTheRuntime) {
  const std::map<std::string, std::string> bad = {
      {"MUSA_EMULATOR_MODE", "eager"},
      {"MUSA_EMULATOR_ARCH", "sm_80"},
      {"MUSA_EMULATOR_DEVICES", "many"},
      {"MUSA_EMULATOR_MEMORY_LIMIT", "2X"},
      {"MUSA_EMULATOR_MEMORY_LIMIT", "0"},
      {"MUSA_EMULATOR_MEMORY", "loose"},
      {"MUSA_EMULATOR_POISON", "yes"},
      {"MUSA_LAUNCH_BLOCKING", "true"},
      {"MUSA_EMULATOR_FAIL", "musaMaloc@1=musaErrorUnknown"},
  };
  for (const auto& [name, value] : bad) {
    configure({{name, value}});
    void* pointer = nullptr;
    EXPECT_STATUS(musaErrorInitializationError, musaMalloc(&pointer, 64)) << name;
    ASSERT_NE(nullptr, musaEmulatorConfigurationError()) << name;
    EXPECT_NE(nullptr, std::strstr(musaEmulatorConfigurationError(), name.c_str()));
    configure({{name, ""}});
  }
  // The fixture restores the variables that this test unsets.
}

TEST_F(DeviceTest, PciBusIdRoundTrips) {
  char id[32];
  ASSERT_OK(musaDeviceGetPCIBusId(id, sizeof id, 1));
  EXPECT_STREQ("0000:02:00.0", id);
  int device = -1;
  EXPECT_OK(musaDeviceGetByPCIBusId(&device, id));
  EXPECT_EQ(1, device);
  EXPECT_STATUS(musaErrorInvalidDevice, musaDeviceGetByPCIBusId(&device, "0000:77:00.0"));
  EXPECT_STATUS(musaErrorInvalidValue, musaDeviceGetByPCIBusId(&device, "nonsense"));
  EXPECT_STATUS(musaErrorInvalidValue, musaDeviceGetPCIBusId(id, 4, 1));
}

TEST_F(DeviceTest, PeerAccessIsSwitchedOncePerPair) {
  int can = -1;
  EXPECT_OK(musaDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_EQ(1, can);
  EXPECT_OK(musaDeviceCanAccessPeer(&can, 1, 1));
  EXPECT_EQ(0, can);
  EXPECT_STATUS(musaErrorInvalidDevice, musaDeviceCanAccessPeer(&can, 0, 9));
  EXPECT_OK(musaDeviceEnablePeerAccess(1, 0));
  EXPECT_STATUS(musaErrorPeerAccessAlreadyEnabled, musaDeviceEnablePeerAccess(1, 0));
  EXPECT_STATUS(musaErrorPeerAccessAlreadyEnabled, musaGetLastError());
  EXPECT_OK(musaGetLastError());
  EXPECT_STATUS(musaErrorInvalidDevice, musaDeviceEnablePeerAccess(0, 0));
  EXPECT_OK(musaDeviceDisablePeerAccess(1));
  EXPECT_STATUS(musaErrorPeerAccessNotEnabled, musaDeviceDisablePeerAccess(1));
}

TEST_F(DeviceTest, VersionsAndPriorities) {
  int driver = 0;
  int runtime = 0;
  EXPECT_OK(musaDriverGetVersion(&driver));
  EXPECT_OK(musaRuntimeGetVersion(&runtime));
  EXPECT_EQ(40301, driver);
  EXPECT_EQ(MUSART_VERSION, runtime);
  int least = 1;
  int greatest = 1;
  EXPECT_OK(musaDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT_EQ(0, least);
  EXPECT_LT(greatest, 0);
}

TEST_F(DeviceTest, ErrorNamesAndTexts) {
  EXPECT_STREQ("musaErrorMemoryAllocation", musaGetErrorName(musaErrorMemoryAllocation));
  EXPECT_STREQ("out of memory", musaGetErrorString(musaErrorMemoryAllocation));
  EXPECT_STREQ("unrecognized error code", musaGetErrorName(static_cast<musaError_t>(123456)));
  // Callers rely on these numbers.
  EXPECT_EQ(1, musaErrorInvalidValue);
  EXPECT_EQ(101, musaErrorInvalidDevice);
  EXPECT_EQ(400, musaErrorInvalidResourceHandle);
  EXPECT_EQ(600, musaErrorNotReady);
  EXPECT_EQ(719, musaErrorLaunchFailure);
  EXPECT_EQ(900, musaErrorStreamCaptureUnsupported);
}

TEST_F(DeviceTest, LimitsAreKnownOrRefused) {
  EXPECT_OK(musaDeviceSetLimit(musaLimitMallocHeapSize, 12345));
  EXPECT_OK(musaDeviceSetLimit(musaLimitDevRuntimePendingLaunchCount, 4096));
  EXPECT_OK(musaDeviceSetLimit(musaLimitPersistingL2CacheSize, 1));
  EXPECT_STATUS(musaErrorUnsupportedLimit, musaDeviceSetLimit(musaLimitMaxL2FetchGranularity, 1));
}
