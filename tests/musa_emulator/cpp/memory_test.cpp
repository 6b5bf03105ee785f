// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <cstring>

#include "emulator_test.h"

class MemoryTest : public EmulatorTest {};

TEST_F(MemoryTest, AllocationsAreAlignedDistinctAndCounted) {
  std::vector<char*> pointers;
  for (const size_t size : {size_t{1}, size_t{511}, size_t{4097}, size_t{3} << 20}) {
    char* pointer = nullptr;
    ASSERT_OK(musaMalloc(&pointer, size));
    EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(pointer) % 512) << size;
    pointers.push_back(pointer);
  }
  EXPECT_EQ(4u, musaEmulatorLiveAllocations(0));
  EXPECT_GE(musaEmulatorLiveBytes(0), size_t{3} << 20);
  EXPECT_EQ(0u, musaEmulatorLiveAllocations(1));
  for (char* pointer : pointers) {
    EXPECT_OK(musaFree(pointer));
  }
  EXPECT_EQ(0u, musaEmulatorLiveBytes(0));
}

TEST_F(MemoryTest, ZeroBytesAndNullAreHarmless) {
  void* pointer = &pointer;
  EXPECT_OK(musaMalloc(&pointer, 0));
  EXPECT_EQ(nullptr, pointer);
  EXPECT_OK(musaFree(nullptr));
  EXPECT_OK(musaFreeHost(nullptr));
  EXPECT_STATUS(musaErrorInvalidValue, musaMalloc(static_cast<void**>(nullptr), 8));
}

TEST_F(MemoryTest, FreeRefusesWhatIsNotTheStartOfAnAllocation) {
  char* pointer = nullptr;
  ASSERT_OK(musaMalloc(&pointer, 8192));
  EXPECT_STATUS(musaErrorInvalidValue, musaFree(pointer + 4096));
  char host = 0;
  EXPECT_STATUS(musaErrorInvalidValue, musaFree(&host));
  EXPECT_OK(musaFree(pointer));
  EXPECT_STATUS(musaErrorInvalidValue, musaFree(pointer)) << "double free";
}

TEST_F(MemoryTest, TheLimitIsEnforcedAndMemoryComesBack) {
  configure({{"MUSA_EMULATOR_MEMORY_LIMIT", "8M"}});
  size_t free = 0;
  size_t total = 0;
  EXPECT_OK(musaMemGetInfo(&free, &total));
  EXPECT_EQ(size_t{8} << 20, total);
  EXPECT_EQ(total, free);
  void* most = nullptr;
  void* more = nullptr;
  ASSERT_OK(musaMalloc(&most, size_t{6} << 20));
  EXPECT_OK(musaMemGetInfo(&free, &total));
  EXPECT_EQ(size_t{2} << 20, free);
  EXPECT_STATUS(musaErrorMemoryAllocation, musaMalloc(&more, size_t{3} << 20));
  EXPECT_EQ(nullptr, more);
  EXPECT_STATUS(musaErrorMemoryAllocation, musaGetLastError());
  EXPECT_STATUS(musaErrorMemoryAllocation, musaMalloc(&more, SIZE_MAX));
  EXPECT_OK(musaSetDevice(1)); // the other device has its own memory
  EXPECT_OK(musaMalloc(&more, size_t{8} << 20));
  EXPECT_OK(musaFree(more));
  EXPECT_OK(musaSetDevice(0));
  EXPECT_OK(musaFree(most));
  EXPECT_OK(musaMalloc(&more, size_t{8} << 20));
  EXPECT_OK(musaFree(more));
}

TEST_F(MemoryTest, ManyAllocationsInRandomOrderNeitherOverlapNorFragment) {
  configure({{"MUSA_EMULATOR_MEMORY_LIMIT", "64M"}});
  unsigned state = 1;
  const auto random = [&state] { return state = state * 1664525u + 1013904223u, state >> 8; };
  std::map<uintptr_t, size_t> live;
  for (int step = 0; step < 2000; ++step) {
    if (live.empty() || random() % 3 != 0) {
      const size_t size = 1 + random() % 60000;
      char* pointer = nullptr;
      ASSERT_OK(musaMalloc(&pointer, size));
      const auto begin = reinterpret_cast<uintptr_t>(pointer);
      const auto next = live.lower_bound(begin);
      ASSERT_TRUE(next == live.end() || begin + size <= next->first);
      ASSERT_TRUE(next == live.begin() || std::prev(next)->first + std::prev(next)->second <= begin);
      live[begin] = size;
    } else {
      auto victim = std::next(live.begin(), random() % live.size());
      ASSERT_OK(musaFree(reinterpret_cast<void*>(victim->first)));
      live.erase(victim);
    }
    while (live.size() > 500) {
      ASSERT_OK(musaFree(reinterpret_cast<void*>(live.begin()->first)));
      live.erase(live.begin());
    }
  }
  for (const auto& [base, size] : live) {
    ASSERT_OK(musaFree(reinterpret_cast<void*>(base)));
  }
  EXPECT_EQ(0u, musaEmulatorLiveBytes(0));
  void* all = nullptr;
  EXPECT_OK(musaMalloc(&all, size_t{64} << 20)) << "the address range did not merge";
  EXPECT_OK(musaFree(all));
}

TEST_F(MemoryTest, PointerAttributesTellTheKindsApart) {
  musaPointerAttributes a = {};
  char* device = nullptr;
  ASSERT_OK(musaSetDevice(1));
  ASSERT_OK(musaMalloc(&device, 100));
  ASSERT_OK(musaSetDevice(0));
  EXPECT_OK(musaPointerGetAttributes(&a, device + 99));
  EXPECT_EQ(musaMemoryTypeDevice, a.type);
  EXPECT_EQ(1, a.device) << "the owner, not the current device";
  EXPECT_EQ(device + 99, a.devicePointer);
  EXPECT_EQ(a.devicePointer, a.hostPointer) << "the host can address shared memory";

  char* pinned = nullptr;
  ASSERT_OK(musaMallocHost(&pinned, 100));
  EXPECT_OK(musaPointerGetAttributes(&a, pinned));
  EXPECT_EQ(musaMemoryTypeHost, a.type);
  EXPECT_EQ(pinned, a.hostPointer);
  EXPECT_EQ(pinned, a.devicePointer);

  char* managed = nullptr;
  ASSERT_OK(musaMallocManaged(&managed, 100));
  managed[3] = 7; // the host can address it
  EXPECT_OK(musaPointerGetAttributes(&a, managed));
  EXPECT_EQ(musaMemoryTypeManaged, a.type);
  EXPECT_OK(musaMemPrefetchAsync(managed, 100, 1, 0));
  EXPECT_OK(musaDeviceSynchronize());

  char plain[16];
  EXPECT_OK(musaPointerGetAttributes(&a, plain));
  EXPECT_EQ(musaMemoryTypeUnregistered, a.type);
  EXPECT_OK(musaFree(device));
  EXPECT_OK(musaFree(managed));
  EXPECT_OK(musaFreeHost(pinned));
  EXPECT_OK(musaPointerGetAttributes(&a, device)) << "after the free";
  EXPECT_EQ(musaMemoryTypeUnregistered, a.type);
}

TEST_F(MemoryTest, RegisteredHostMemoryKeepsItsAddress) {
  std::vector<char> host(10000);
  ASSERT_OK(musaHostRegister(host.data(), host.size(), musaHostRegisterDefault));
  musaPointerAttributes a = {};
  EXPECT_OK(musaPointerGetAttributes(&a, host.data() + 9999));
  EXPECT_EQ(musaMemoryTypeHost, a.type);
  void* device = nullptr;
  EXPECT_OK(musaHostGetDevicePointer(&device, host.data(), 0));
  EXPECT_EQ(host.data(), device);
  EXPECT_STATUS(musaErrorHostMemoryAlreadyRegistered, musaHostRegister(host.data() + 100, 10, 0));
  EXPECT_STATUS(musaErrorHostMemoryNotRegistered, musaHostUnregister(host.data() + 100));
  EXPECT_OK(musaHostUnregister(host.data()));
  EXPECT_STATUS(musaErrorHostMemoryNotRegistered, musaHostUnregister(host.data()));
  EXPECT_STATUS(musaErrorInvalidValue, musaHostGetDevicePointer(&device, host.data(), 0));
  EXPECT_STATUS(musaErrorInvalidValue, musaHostRegister(host.data(), 0, 0));
}

TEST_F(MemoryTest, HostFlagsAreChecked) {
  void* pinned = nullptr;
  ASSERT_OK(musaHostAlloc(&pinned, 64, musaHostAllocPortable | musaHostAllocWriteCombined));
  void* refused = nullptr;
  EXPECT_STATUS(musaErrorInvalidValue, musaHostAlloc(&refused, 64, 0x80));
  EXPECT_STATUS(musaErrorInvalidValue, musaFree(pinned)) << "page-locked memory is not device memory";
  EXPECT_OK(musaFreeHost(pinned));
}

TEST_F(MemoryTest, PoisonFillsFreshMemory) {
  configure({{"MUSA_EMULATOR_POISON", "1"}});
  const DeviceArray<unsigned char> array(5000);
  for (const unsigned char byte : read_back(array.data, 5000)) {
    ASSERT_EQ(0xCD, byte);
  }
}

TEST_F(MemoryTest, FreeWaitsForWorkThatUsesTheMemory) {
  const Stream stream;
  int* pointer = nullptr;
  ASSERT_OK(musaMalloc(&pointer, 1 << 20));
  std::atomic<bool> done{false};
  EXPECT_OK(musaLaunchHostFunc(
      stream,
      [](void* flag) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        static_cast<std::atomic<bool>*>(flag)->store(true);
      },
      &done));
  EXPECT_OK(musaFree(pointer));
  EXPECT_TRUE(done.load());
}

TEST_F(MemoryTest, PitchedMemory) {
  char* pointer = nullptr;
  size_t pitch = 0;
  ASSERT_OK(musaMallocPitch(&pointer, &pitch, 1000, 10));
  EXPECT_GE(pitch, 1000u);
  EXPECT_EQ(0u, pitch % 512);
  EXPECT_OK(musaMemset2D(pointer, pitch, 3, 1000, 10));
  EXPECT_EQ(3, read_back(pointer + 9 * pitch, 1000)[999]);
  EXPECT_OK(musaFree(pointer));
  musaPitchedPtr volume = {};
  ASSERT_OK(musaMalloc3D(&volume, make_musaExtent(100, 5, 4)));
  EXPECT_OK(musaMemset3D(volume, 9, make_musaExtent(100, 5, 4)));
  const char* last = static_cast<char*>(volume.ptr) + 3 * volume.pitch * 5 + 4 * volume.pitch;
  EXPECT_EQ(9, read_back(last, 100)[99]);
  EXPECT_OK(musaFree(volume.ptr));
  EXPECT_STATUS(musaErrorMemoryAllocation, musaMalloc3D(&volume, make_musaExtent(SIZE_MAX / 4, SIZE_MAX / 4, 4)));
}

class StrictMemoryTest : public EmulatorTest {
 protected:
  void SetUp() override {
    EmulatorTest::SetUp();
    configure({{"MUSA_EMULATOR_MEMORY", "strict"}});
  }
};

TEST_F(StrictMemoryTest, TheApiWorksWhileTheHostIsShutOut) {
  musaDeviceProp p = {};
  EXPECT_OK(musaGetDeviceProperties(&p, 0));
  EXPECT_EQ(0, p.integrated);
  void* memory = nullptr;
  EXPECT_OK(musaMalloc(&memory, 16));
  musaPointerAttributes attributes = {};
  EXPECT_OK(musaPointerGetAttributes(&attributes, memory));
  EXPECT_EQ(nullptr, attributes.hostPointer);
  EXPECT_OK(musaFree(memory));
  const DeviceArray<int> a(1000);
  const DeviceArray<int> b(1000);
  EXPECT_EQ(int(0xCDCDCDCD), read_back(a.data, 1000)[999]) << "poisoned by default";
  write_to(a.data, std::vector<int>(1000, 5));
  EXPECT_OK(musaMemcpy(b, a, 4000, musaMemcpyDeviceToDevice));
  EXPECT_OK(musaMemset(a, 0, 4000));
  EXPECT_EQ(5, read_back(b.data, 1000)[500]);
  EXPECT_EQ(0, read_back(a.data, 1000)[500]);
}

TEST_F(StrictMemoryTest, TasksReachAllDeviceMemory) {
  const DeviceArray<int> a(4);
  write_to(a.data, {1, 2, 3, 4});
  EXPECT_OK(musaEmulatorLaunchTask(
      0, "double",
      [](void* data) {
        for (int i = 0; i < 4; ++i) {
          static_cast<int*>(data)[i] *= 2;
        }
        return musaSuccess;
      },
      a.data, nullptr));
  EXPECT_EQ((std::vector<int>{2, 4, 6, 8}), read_back(a.data, 4));
}
