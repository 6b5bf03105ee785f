// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "emulator_test.h"

namespace {

// Replaces a compiled kernel: out[i] = a * x[i] + i over all threads of the grid.
musaError_t run_axpy(void** arguments, dim3 grid, dim3 block, size_t) {
  int* out = *static_cast<int**>(arguments[0]);
  const int* x = *static_cast<const int**>(arguments[1]);
  const char a = *static_cast<char*>(arguments[2]);
  const double bias = *static_cast<double*>(arguments[3]);
  for (unsigned i = 0; i < grid.x * block.x; ++i) {
    out[i] = a * x[i] + static_cast<int>(bias);
  }
  return musaSuccess;
}

void axpy(int*, const int*, char, double) {}
void broken() {}

} // namespace

class KernelTest : public EmulatorTest {
 protected:
  void SetUp() override {
    EmulatorTest::SetUp();
    const size_t sizes[] = {sizeof(int*), sizeof(int*), sizeof(char), sizeof(double)};
    musaEmulatorKernelInfo info = {"axpy", run_axpy, sizes, 4, 256, 1024};
    ASSERT_OK(musaEmulatorRegisterKernel(symbol(), &info));
  }
  void TearDown() override {
    EXPECT_OK(musaEmulatorUnregisterKernel(symbol()));
    EmulatorTest::TearDown();
  }
  static const void* symbol() { return reinterpret_cast<const void*>(&axpy); }

  // Loses the device by a kernel that fails with `entry`.
  void lose(musaEmulatorKernelEntry entry) {
    musaEmulatorKernelInfo info = {"broken", entry, nullptr, 0, 0, 0};
    EXPECT_OK(musaEmulatorRegisterKernel(reinterpret_cast<const void*>(&broken), &info));
    EXPECT_OK(musaLaunchKernel(&broken, dim3(1), dim3(1), nullptr));
    EXPECT_OK(musaEmulatorUnregisterKernel(reinterpret_cast<const void*>(&broken)));
  }
};

TEST_F(KernelTest, ArgumentsAreCopiedAtTheLaunch) {
  const Stream stream;
  const DeviceArray<int> out(64);
  const DeviceArray<int> x(64);
  write_to(x.data, std::vector<int>(64, 10));
  int* out_argument = out;
  const int* x_argument = x;
  char a = 3;
  double bias = 4.5;
  void* arguments[] = {&out_argument, &x_argument, &a, &bias};
  Blocker blocker(stream);
  EXPECT_OK(musaLaunchKernel(&axpy, dim3(2), dim3(32), arguments, 0, stream));
  a = 99;
  out_argument = nullptr;
  blocker.release();
  EXPECT_OK(musaStreamSynchronize(stream));
  EXPECT_EQ(std::vector<int>(64, 34), read_back(out.data, 64));
}

TEST_F(KernelTest, TypedLaunchConvertsArguments) {
  const DeviceArray<int> out(32);
  const DeviceArray<int> x(32);
  write_to(x.data, std::vector<int>(32, 1));
  musaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(32);
  EXPECT_OK(musaLaunchKernelEx(&config, &axpy, out.data, x.data, 'A', 1)); // the int becomes a double
  EXPECT_EQ(std::vector<int>(32, 'A' + 1), read_back(out.data, 32));
}

TEST_F(KernelTest, LimitsOfTheDeviceAreEnforced) {
  int* out = nullptr;
  const int* x = nullptr;
  char a = 0;
  double bias = 0;
  void* arguments[] = {&out, &x, &a, &bias};
  EXPECT_STATUS(musaErrorInvalidConfiguration, musaLaunchKernel(&axpy, dim3(0), dim3(1), arguments));
  EXPECT_STATUS(musaErrorInvalidConfiguration, musaLaunchKernel(&axpy, dim3(1), dim3(2048), arguments));
  EXPECT_STATUS(musaErrorInvalidConfiguration, musaLaunchKernel(&axpy, dim3(1), dim3(64, 64), arguments));
  EXPECT_STATUS(musaErrorLaunchOutOfResources, musaLaunchKernel(&axpy, dim3(1), dim3(512), arguments))
      << "more than its launch bounds";
  EXPECT_STATUS(musaErrorInvalidValue, musaLaunchKernel(&axpy, dim3(1), dim3(1), arguments, 1 << 20));
  EXPECT_STATUS(musaErrorInvalidValue, musaLaunchKernel(&axpy, dim3(1), dim3(1), nullptr));
  EXPECT_STATUS(musaErrorInvalidDeviceFunction, musaLaunchKernel(&broken, dim3(1), dim3(1), nullptr));
  EXPECT_STATUS(
      musaErrorCooperativeLaunchTooLarge, musaLaunchCooperativeKernel(&axpy, dim3(1 << 20), dim3(256), arguments));
  EXPECT_OK(musaDeviceSynchronize()) << "a refused launch does not lose the device";
}

TEST_F(KernelTest, AttributesAndOccupancy) {
  musaFuncAttributes attributes = {};
  EXPECT_OK(musaFuncGetAttributes(&attributes, &axpy));
  EXPECT_EQ(256, attributes.maxThreadsPerBlock);
  EXPECT_EQ(1024u, attributes.sharedSizeBytes);
  EXPECT_OK(musaFuncSetAttribute(&axpy, musaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
  EXPECT_OK(musaFuncGetAttributes(&attributes, &axpy));
  EXPECT_EQ(64 << 10, attributes.maxDynamicSharedSizeBytes);
  EXPECT_STATUS(
      musaErrorInvalidValue, musaFuncSetAttribute(&axpy, musaFuncAttributeMaxDynamicSharedMemorySize, 1 << 30));
  int blocks = 0;
  EXPECT_OK(musaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &axpy, 256, 0));
  EXPECT_EQ(3072 / 256, blocks);
  EXPECT_OK(musaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &axpy, 64, 64 << 10));
  EXPECT_EQ(2, blocks) << "65 KiB a block, 192 KiB in all";
  int grid = 0;
  int block = 0;
  EXPECT_OK(musaOccupancyMaxPotentialBlockSize(&grid, &block, &axpy));
  EXPECT_EQ(256, block);
  EXPECT_EQ(56 * 12, grid);
}

TEST_F(KernelTest, AFailureLosesTheDeviceUntilItIsReset) {
  lose([](void**, dim3, dim3, size_t) { return musaErrorLaunchFailure; });
  EXPECT_STATUS(musaErrorLaunchFailure, musaDeviceSynchronize());
  void* pointer = nullptr;
  EXPECT_STATUS(musaErrorLaunchFailure, musaMalloc(&pointer, 64));
  EXPECT_STATUS(musaErrorLaunchFailure, musaStreamQuery(0));
  EXPECT_STATUS(musaErrorLaunchFailure, musaGetLastError());
  EXPECT_OK(musaGetLastError()) << "cleared by reading, until the next call reports it again";
  EXPECT_OK(musaSetDevice(1));
  EXPECT_OK(musaDeviceSynchronize()) << "the other device is unharmed";
  EXPECT_OK(musaSetDevice(0));
  EXPECT_OK(musaDeviceReset());
  EXPECT_OK(musaMalloc(&pointer, 64));
  EXPECT_OK(musaFree(pointer));
}

TEST_F(KernelTest, AnExceptionLosesTheDevice) {
  lose([](void**, dim3, dim3, size_t) -> musaError_t { throw std::runtime_error("inside a kernel"); });
  EXPECT_STATUS(musaErrorLaunchFailure, musaDeviceSynchronize());
  EXPECT_OK(musaDeviceReset());
}

TEST_F(KernelTest, AnIllegalAccessLosesTheDeviceNotTheProcess) {
  lose([](void**, dim3, dim3, size_t) {
    // Volatile, because the compiler and UBSAN would reject a literal null.
    volatile uintptr_t address = 64;
    *reinterpret_cast<volatile int*>(address) = 1;
    return musaSuccess;
  });
  EXPECT_STATUS(musaErrorIllegalAddress, musaDeviceSynchronize());
  EXPECT_OK(musaDeviceReset());
  EXPECT_OK(musaDeviceSynchronize());
}

TEST_F(KernelTest, WorkBehindALostDeviceIsDroppedButCallbacksAreTold) {
  const Stream stream;
  std::atomic<bool> ran{false};
  struct Seen {
    std::atomic<int> status{-1};
  } seen;
  Blocker blocker(stream);
  EXPECT_OK(musaEmulatorLaunchTask(stream, "fails", [](void*) { return musaErrorAssert; }, nullptr, nullptr));
  EXPECT_OK(musaLaunchHostFunc(stream, [](void* flag) { static_cast<std::atomic<bool>*>(flag)->store(true); }, &ran));
  EXPECT_OK(musaStreamAddCallback(
      stream, [](musaStream_t, musaError_t status, void* out) { static_cast<Seen*>(out)->status = status; }, &seen, 0));
  blocker.release();
  EXPECT_STATUS(musaErrorAssert, musaStreamSynchronize(stream));
  EXPECT_FALSE(ran.load());
  EXPECT_EQ(musaErrorAssert, seen.status.load());
  EXPECT_STATUS(musaErrorAssert, musaStreamDestroy(stream)) << "reported, and destroyed all the same";
  EXPECT_OK(musaDeviceReset());
  musaStream_t replacement = nullptr;
  EXPECT_OK(musaStreamCreate(&replacement));
  const_cast<Stream&>(stream).handle = replacement; // for the guard to destroy
}

TEST_F(KernelTest, KernelNodesReplay) {
  const DeviceArray<int> out(32);
  const DeviceArray<int> x(32);
  write_to(x.data, std::vector<int>(32, 2));
  int* out_argument = out;
  const int* x_argument = x;
  char a = 5;
  double bias = 1;
  void* arguments[] = {&out_argument, &x_argument, &a, &bias};
  musaKernelNodeParams p = {};
  p.func = const_cast<void*>(symbol());
  p.gridDim = dim3(1);
  p.blockDim = dim3(32);
  p.kernelParams = arguments;
  musaGraph_t graph = nullptr;
  musaGraphNode_t node = nullptr;
  ASSERT_OK(musaGraphCreate(&graph, 0));
  EXPECT_OK(musaGraphAddKernelNode(&node, graph, nullptr, 0, &p));
  musaKernelNodeParams back = {};
  EXPECT_OK(musaGraphKernelNodeGetParams(node, &back));
  EXPECT_EQ(symbol(), back.func);
  EXPECT_EQ(32u, back.blockDim.x);
  EXPECT_EQ(5, *static_cast<char*>(back.kernelParams[2]));
  musaGraphExec_t exec = nullptr;
  ASSERT_OK(musaGraphInstantiate(&exec, graph));
  EXPECT_OK(musaGraphLaunch(exec, 0));
  EXPECT_EQ(std::vector<int>(32, 11), read_back(out.data, 32));
  a = 6;
  EXPECT_OK(musaGraphExecKernelNodeSetParams(exec, node, &p));
  EXPECT_OK(musaGraphLaunch(exec, 0));
  EXPECT_EQ(std::vector<int>(32, 13), read_back(out.data, 32));
  EXPECT_OK(musaGraphExecDestroy(exec));
  EXPECT_OK(musaGraphDestroy(graph));
}

TEST_F(KernelTest, ThePayloadOfARefusedTaskIsDestroyed) {
  static std::atomic<int> destroyed;
  destroyed = 0;
  const auto destroy = [](void*) { ++destroyed; };
  const auto run = [](void*) { return musaSuccess; };
  musaEmulatorFailNext("musaEmulatorLaunchTask", musaErrorUnknown);
  EXPECT_STATUS(musaErrorUnknown, musaEmulatorLaunchTask(0, "t", run, nullptr, destroy));
  EXPECT_EQ(1, destroyed.load());
  EXPECT_STATUS(musaErrorInvalidValue, musaEmulatorLaunchTask(0, "t", nullptr, nullptr, destroy));
  EXPECT_EQ(2, destroyed.load());
  EXPECT_OK(musaEmulatorLaunchTask(0, "t", run, nullptr, destroy));
  EXPECT_OK(musaDeviceSynchronize());
  EXPECT_EQ(3, destroyed.load());
}
