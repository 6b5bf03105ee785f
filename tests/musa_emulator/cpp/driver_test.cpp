// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <dlfcn.h>

#include <cstring>

#include "emulator_test.h"
#include "musa.h"

class DriverTest : public EmulatorTest {};

TEST_F(DriverTest, SharesStateWithTheRuntime) {
  EXPECT_EQ(MUSA_SUCCESS, muInit(0));
  MUdeviceptr pointer = 0;
  ASSERT_EQ(MUSA_SUCCESS, muMemAlloc(&pointer, 4096));
  EXPECT_EQ(1u, musaEmulatorLiveAllocations(0));
  MUstream stream = nullptr;
  ASSERT_EQ(MUSA_SUCCESS, muStreamCreate(&stream, MU_STREAM_NON_BLOCKING));
  EXPECT_EQ(MUSA_SUCCESS, muMemsetD32Async(pointer, 0x01020304, 1024, stream));
  EXPECT_OK(musaStreamSynchronize(stream)) << "a driver stream is a runtime stream";
  int value = 0;
  EXPECT_OK(musaMemcpy(&value, reinterpret_cast<void*>(pointer + 4092), 4, musaMemcpyDeviceToHost));
  EXPECT_EQ(0x01020304, value);
  MUdeviceptr base = 0;
  size_t bytes = 0;
  EXPECT_EQ(MUSA_SUCCESS, muMemGetAddressRange(&base, &bytes, pointer + 100));
  EXPECT_EQ(pointer, base);
  EXPECT_EQ(4096u, bytes);
  EXPECT_OK(musaStreamDestroy(stream));
  EXPECT_EQ(MUSA_SUCCESS, muMemFree(pointer));
}

TEST_F(DriverTest, PrimaryContextIsActiveAfterFirstUse) {
  unsigned flags = 1;
  int active = 1;
  EXPECT_OK(musaSetDevice(1)); // selecting a device is not a use of it
  EXPECT_EQ(MUSA_SUCCESS, muDevicePrimaryCtxGetState(1, &flags, &active));
  EXPECT_EQ(0, active);
  void* pointer = nullptr;
  EXPECT_OK(musaMalloc(&pointer, 16));
  EXPECT_EQ(MUSA_SUCCESS, muDevicePrimaryCtxGetState(1, &flags, &active));
  EXPECT_EQ(1, active);
  EXPECT_EQ(MUSA_SUCCESS, muDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(0, active);
  EXPECT_OK(musaFree(pointer));
  EXPECT_EQ(MUSA_ERROR_INVALID_DEVICE, muDevicePrimaryCtxGetState(9, &flags, &active));
}

TEST_F(DriverTest, ErrorsHaveDriverNamesAndLeaveTheRuntimesLastError) {
  const char* text = nullptr;
  EXPECT_EQ(MUSA_SUCCESS, muGetErrorName(MUSA_ERROR_OUT_OF_MEMORY, &text));
  EXPECT_STREQ("MUSA_ERROR_OUT_OF_MEMORY", text);
  EXPECT_EQ(MUSA_SUCCESS, muGetErrorString(MUSA_ERROR_OUT_OF_MEMORY, &text));
  EXPECT_STREQ("out of memory", text);
  EXPECT_EQ(MUSA_ERROR_INVALID_VALUE, muGetErrorName(static_cast<MUresult>(4242), &text));
  EXPECT_EQ(MUSA_ERROR_INVALID_VALUE, muMemFree(0x1234));
  EXPECT_OK(musaGetLastError());
}

TEST_F(DriverTest, DevicesAndPointers) {
  int version = 0;
  EXPECT_EQ(MUSA_SUCCESS, muDriverGetVersion(&version));
  EXPECT_EQ(MUSA_VERSION, version);
  int count = 0;
  EXPECT_EQ(MUSA_SUCCESS, muDeviceGetCount(&count));
  EXPECT_EQ(2, count);
  char name[64] = "";
  EXPECT_EQ(MUSA_SUCCESS, muDeviceGetName(name, sizeof name, 0));
  EXPECT_GT(std::strlen(name), 0u);
  int warp = 0;
  EXPECT_EQ(MUSA_SUCCESS, muDeviceGetAttribute(&warp, MU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
  EXPECT_EQ(32, warp);
  MUdevice device = 5;
  EXPECT_EQ(MUSA_ERROR_INVALID_DEVICE, muDeviceGet(&device, 2));
  EXPECT_EQ(MUSA_SUCCESS, muDeviceGet(&device, 1));
  EXPECT_EQ(1, device);
  MUcontext context = nullptr;
  EXPECT_EQ(MUSA_SUCCESS, muDevicePrimaryCtxRetain(&context, 1));
  EXPECT_EQ(MUSA_SUCCESS, muCtxSetCurrent(context));
  int current = -1;
  EXPECT_OK(musaGetDevice(&current));
  EXPECT_EQ(1, current);
  MUdeviceptr pointer = 0;
  ASSERT_EQ(MUSA_SUCCESS, muMemAlloc(&pointer, 64));
  int ordinal = -1;
  EXPECT_EQ(MUSA_SUCCESS, muPointerGetAttribute(&ordinal, MU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer));
  EXPECT_EQ(1, ordinal);
  EXPECT_EQ(MUSA_SUCCESS, muMemFree(pointer));
}

TEST_F(DriverTest, IsLoadedWithTheRuntimeUnderItsOwnName) {
  void* library = dlopen("libmusa.so", RTLD_LAZY | RTLD_NOLOAD);
  ASSERT_NE(nullptr, library) << dlerror();
  EXPECT_NE(nullptr, dlsym(library, "muDevicePrimaryCtxGetState"));
  dlclose(library);
}

TEST_F(DriverTest, EventsMeasureTime) {
  MUevent start = nullptr;
  MUevent end = nullptr;
  ASSERT_EQ(MUSA_SUCCESS, muEventCreate(&start, MU_EVENT_DEFAULT));
  ASSERT_EQ(MUSA_SUCCESS, muEventCreate(&end, MU_EVENT_DEFAULT));
  EXPECT_EQ(MUSA_SUCCESS, muEventRecord(start, nullptr));
  EXPECT_EQ(MUSA_SUCCESS, muEventRecord(end, nullptr));
  EXPECT_EQ(MUSA_SUCCESS, muEventSynchronize(end));
  float ms = -1;
  EXPECT_EQ(MUSA_SUCCESS, muEventElapsedTime(&ms, start, end));
  EXPECT_GE(ms, 0.0F);
  EXPECT_EQ(MUSA_SUCCESS, muEventDestroy(start));
  EXPECT_EQ(MUSA_SUCCESS, muEventDestroy(end));
}
