// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The driver's virtual memory management, and the other functions of the API with such memory.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "emulator_test.h"
#include "musa.h"

namespace {

constexpr size_t kUnit = size_t{2} << 20;

#define EXPECT_DRIVER(expected, expression) EXPECT_EQ(expected, expression) << #expression
#define EXPECT_MU(expression) EXPECT_DRIVER(MUSA_SUCCESS, expression)
#define ASSERT_MU(expression) ASSERT_EQ(MUSA_SUCCESS, expression) << #expression

MUmemAllocationProp on_device(int device, bool shareable = false) {
  MUmemAllocationProp prop = {};
  prop.type = MU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {MU_MEM_LOCATION_TYPE_DEVICE, device};
  prop.requestedHandleTypes = shareable ? MU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : MU_MEM_HANDLE_TYPE_NONE;
  return prop;
}

MUmemGenericAllocationHandle create(size_t size, int device = 0, bool shareable = false) {
  MUmemGenericAllocationHandle handle = 0;
  const MUmemAllocationProp prop = on_device(device, shareable);
  EXPECT_MU(muMemCreate(&handle, size, &prop, 0));
  return handle;
}

MUresult grant(MUdeviceptr address, size_t size, MUmemAccess_flags flags, int device = 0) {
  const MUmemAccessDesc desc = {{MU_MEM_LOCATION_TYPE_DEVICE, device}, flags};
  return muMemSetAccess(address, size, &desc, 1);
}

char* host(MUdeviceptr address) { return reinterpret_cast<char*>(address); }

// An accessible address range that is mapped to one allocation.
struct Mapped {
  explicit Mapped(size_t size, int device = 0) : bytes(size) {
    EXPECT_MU(muMemAddressReserve(&address, size, 0, 0, 0));
    handle = create(size, device);
    EXPECT_MU(muMemMap(address, size, 0, handle, 0));
    EXPECT_MU(grant(address, size, MU_MEM_ACCESS_FLAGS_PROT_READWRITE, device));
  }
  ~Mapped() {
    EXPECT_MU(muMemUnmap(address, bytes));
    EXPECT_MU(muMemRelease(handle));
    EXPECT_MU(muMemAddressFree(address, bytes));
  }
  Mapped(const Mapped&) = delete;
  size_t bytes;
  MUdeviceptr address = 0;
  MUmemGenericAllocationHandle handle = 0;
};

} // namespace

class VirtualMemoryTest : public EmulatorTest {
 protected:
  void SetUp() override {
    EmulatorTest::SetUp();
    ASSERT_MU(muMemAddressReserve(&range_, kRange, 0, 0, 0));
  }
  void TearDown() override {
    EXPECT_MU(muMemAddressFree(range_, kRange));
    EmulatorTest::TearDown();
  }
  void reserve_again() { ASSERT_MU(muMemAddressReserve(&range_, kRange, 0, 0, 0)); }

  static constexpr size_t kRange = 8 * kUnit;
  MUdeviceptr range_ = 0;
};

TEST_F(VirtualMemoryTest, DevicesOfferIt) {
  int supported = 0;
  EXPECT_MU(muDeviceGetAttribute(&supported, MU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED, 1));
  EXPECT_EQ(1, supported);
  size_t granularity = 0;
  const MUmemAllocationProp prop = on_device(0);
  EXPECT_MU(muMemGetAllocationGranularity(&granularity, &prop, MU_MEM_ALLOC_GRANULARITY_MINIMUM));
  EXPECT_EQ(kUnit, granularity);
  EXPECT_MU(muMemGetAllocationGranularity(&granularity, &prop, MU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  EXPECT_EQ(kUnit, granularity);
}

TEST_F(VirtualMemoryTest, MemoryLivesWhileItIsMappedOrHeld) {
  const auto handle = create(2 * kUnit);
  EXPECT_EQ(1u, musaEmulatorLiveAllocations(0));
  EXPECT_MU(muMemMap(range_, 2 * kUnit, 0, handle, 0));
  EXPECT_MU(muMemRelease(handle));
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemRelease(handle)) << "released already";
  EXPECT_MU(grant(range_, 2 * kUnit, MU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  EXPECT_OK(musaMemset(host(range_), 5, 2 * kUnit));
  EXPECT_EQ(5, read_back(host(range_), 2 * kUnit).back());
  EXPECT_EQ(1u, musaEmulatorLiveAllocations(0)) << "the mapping holds it";
  EXPECT_OK(musaDeviceSynchronize());
  EXPECT_MU(muMemUnmap(range_, 2 * kUnit));
  EXPECT_EQ(0u, musaEmulatorLiveAllocations(0));
}

TEST_F(VirtualMemoryTest, ContentsMoveWithTheAllocation) {
  const auto handle = create(kUnit);
  EXPECT_MU(muMemMap(range_, kUnit, 0, handle, 0));
  EXPECT_MU(muMemMap(range_ + 4 * kUnit, kUnit, 0, handle, 0)) << "the same memory, twice";
  EXPECT_MU(grant(range_, kUnit, MU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  EXPECT_MU(grant(range_ + 4 * kUnit, kUnit, MU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  EXPECT_OK(musaMemset(host(range_), 9, kUnit));
  EXPECT_EQ(9, read_back(host(range_ + 4 * kUnit), kUnit)[17]);
  EXPECT_OK(musaDeviceSynchronize());
  EXPECT_MU(muMemUnmap(range_, kUnit));
  EXPECT_MU(muMemUnmap(range_ + 4 * kUnit, kUnit));
  EXPECT_MU(muMemMap(range_ + kUnit, kUnit, 0, handle, 0));
  EXPECT_MU(grant(range_ + kUnit, kUnit, MU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  EXPECT_EQ(9, read_back(host(range_ + kUnit), kUnit)[17]);
  EXPECT_MU(muMemUnmap(range_ + kUnit, kUnit));
  EXPECT_MU(muMemRelease(handle));
}

TEST_F(VirtualMemoryTest, WorkMayRunAcrossMappingsSideBySide) {
  const auto first = create(kUnit);
  const auto second = create(2 * kUnit);
  EXPECT_MU(muMemMap(range_, kUnit, 0, first, 0));
  EXPECT_MU(muMemMap(range_ + kUnit, 2 * kUnit, 0, second, 0));
  EXPECT_MU(grant(range_, 3 * kUnit, MU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  EXPECT_OK(musaMemset(host(range_), 3, 3 * kUnit));
  EXPECT_EQ(std::vector<char>(64, 3), read_back(host(range_ + kUnit - 32), 64));
  char byte = 0;
  EXPECT_STATUS(musaErrorInvalidValue, musaMemcpy(&byte, host(range_ + 3 * kUnit), 1, musaMemcpyDeviceToHost))
      << "nothing is mapped there";
  EXPECT_STATUS(musaErrorInvalidValue, musaMemset(host(range_ + 3 * kUnit - 8), 0, 9)) << "runs past the end";
  EXPECT_OK(musaDeviceSynchronize());
  EXPECT_MU(muMemUnmap(range_, 3 * kUnit));
  EXPECT_MU(muMemRelease(first));
  EXPECT_MU(muMemRelease(second));
}

TEST_F(VirtualMemoryTest, PointersIntoMappingsAreDevicePointers) {
  const Mapped mapped(2 * kUnit, /*device=*/1);
  musaPointerAttributes attributes = {};
  EXPECT_OK(musaPointerGetAttributes(&attributes, host(mapped.address + 100)));
  EXPECT_EQ(musaMemoryTypeDevice, attributes.type);
  EXPECT_EQ(1, attributes.device);
  MUdeviceptr base = 0;
  size_t bytes = 0;
  EXPECT_MU(muMemGetAddressRange(&base, &bytes, mapped.address + 100));
  EXPECT_EQ(mapped.address, base);
  EXPECT_EQ(2 * kUnit, bytes);
  EXPECT_OK(musaPointerGetAttributes(&attributes, host(range_)));
  EXPECT_EQ(musaMemoryTypeUnregistered, attributes.type) << "reserved, not mapped";
  EXPECT_STATUS(musaErrorInvalidValue, musaFree(host(mapped.address)));
  musaIpcMemHandle_t handle = {};
  EXPECT_STATUS(musaErrorInvalidValue, musaIpcGetMemHandle(&handle, host(mapped.address)));
}

TEST_F(VirtualMemoryTest, PhysicalMemoryIsWhatCounts) {
  configure({{"MUSA_EMULATOR_MEMORY_LIMIT", "64M"}});
  reserve_again();
  size_t free = 0;
  size_t total = 0;
  EXPECT_OK(musaMemGetInfo(&free, &total));
  EXPECT_EQ(64u << 20, free) << "addresses cost nothing";
  const auto handle = create(40 << 20);
  EXPECT_OK(musaMemGetInfo(&free, &total));
  EXPECT_EQ(24u << 20, free);
  EXPECT_EQ(40u << 20, musaEmulatorLiveBytes(0));
  MUmemGenericAllocationHandle more = 0;
  MUmemAllocationProp prop = on_device(0);
  EXPECT_DRIVER(MUSA_ERROR_OUT_OF_MEMORY, muMemCreate(&more, 26 << 20, &prop, 0));
  void* pointer = nullptr;
  EXPECT_STATUS(musaErrorMemoryAllocation, musaMalloc(&pointer, 26 << 20)) << "one budget for both";
  prop = on_device(1);
  EXPECT_MU(muMemCreate(&more, 26 << 20, &prop, 0)) << "each device has its own";
  EXPECT_MU(muMemRelease(more));
  EXPECT_MU(muMemRelease(handle));
  EXPECT_OK(musaMemGetInfo(&free, &total));
  EXPECT_EQ(total, free);
}

TEST_F(VirtualMemoryTest, SizesAndAddressesKeepToTheGranularity) {
  MUdeviceptr address = 0;
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemAddressReserve(&address, kUnit + 4096, 0, 0, 0));
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemAddressReserve(&address, 0, 0, 0, 0));
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemAddressReserve(&address, kUnit, 3 * kUnit, 0, 0));
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemAddressReserve(&address, kUnit, 0, 0, 1));
  EXPECT_MU(muMemAddressReserve(&address, kUnit, 64 * kUnit, 0, 0));
  EXPECT_EQ(0u, address % (64 * kUnit));
  EXPECT_MU(muMemAddressFree(address, kUnit));
  MUmemGenericAllocationHandle handle = 0;
  MUmemAllocationProp prop = on_device(0);
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemCreate(&handle, kUnit / 2, &prop, 0));
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemCreate(&handle, 0, &prop, 0));
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemCreate(&handle, kUnit, &prop, 1));
  prop.location.id = 7;
  EXPECT_DRIVER(MUSA_ERROR_INVALID_DEVICE, muMemCreate(&handle, kUnit, &prop, 0));
  prop = {};
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemCreate(&handle, kUnit, &prop, 0)) << "no type";
  handle = create(2 * kUnit);
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemMap(range_ + 4096, kUnit, 0, handle, 0));
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemMap(range_, kUnit + 4096, 0, handle, 0));
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemMap(range_, kUnit, kUnit, handle, 0)) << "from the middle";
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemMap(range_, 3 * kUnit, 0, handle, 0)) << "more than there is";
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemMap(range_ + 7 * kUnit, 2 * kUnit, 0, handle, 0)) << "beyond the range";
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemMap(range_ + kRange, kUnit, 0, handle, 0)) << "not reserved";
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemMap(range_, kUnit, 0, handle + 1000, 0)) << "no such handle";
  EXPECT_MU(muMemRelease(handle));
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemMap(range_, kUnit, 0, handle, 0)) << "released";
}

TEST_F(VirtualMemoryTest, RangesAreMappedOnceAndUnmappedWhole) {
  const auto first = create(2 * kUnit);
  const auto second = create(2 * kUnit);
  EXPECT_MU(muMemMap(range_ + 2 * kUnit, 2 * kUnit, 0, first, 0));
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemMap(range_ + kUnit, 2 * kUnit, 0, second, 0));
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemMap(range_ + 3 * kUnit, 2 * kUnit, 0, second, 0));
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemUnmap(range_ + 2 * kUnit, kUnit)) << "half of a mapping";
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemUnmap(range_ + kUnit, 3 * kUnit)) << "partly not mapped";
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, grant(range_ + 3 * kUnit, kUnit, MU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, grant(range_ + kUnit, 3 * kUnit, MU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  EXPECT_DRIVER(MUSA_ERROR_INVALID_DEVICE, grant(range_ + 2 * kUnit, 2 * kUnit, MU_MEM_ACCESS_FLAGS_PROT_READWRITE, 9));
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemAddressFree(range_, kRange)) << "mapped still";
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemAddressFree(range_, kUnit)) << "another size than reserved";
  EXPECT_MU(muMemUnmap(range_ + 2 * kUnit, 2 * kUnit));
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemUnmap(range_ + 2 * kUnit, 2 * kUnit)) << "unmapped already";
  EXPECT_MU(muMemMap(range_ + kUnit, 2 * kUnit, 0, second, 0)) << "free again";
  EXPECT_MU(muMemUnmap(range_ + kUnit, 2 * kUnit));
  EXPECT_MU(muMemRelease(first));
  EXPECT_MU(muMemRelease(second));
}

TEST_F(VirtualMemoryTest, ACopyWithoutAccessLosesTheDevice) {
  const auto handle = create(kUnit);
  EXPECT_MU(muMemMap(range_, kUnit, 0, handle, 0));
  EXPECT_OK(musaMemsetAsync(host(range_), 1, 16, nullptr)) << "the fault shows when the work runs";
  EXPECT_STATUS(musaErrorIllegalAddress, musaDeviceSynchronize());
  EXPECT_OK(musaDeviceReset());
  EXPECT_EQ(0u, musaEmulatorLiveAllocations(0)) << "the reset took the memory";
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemUnmap(range_, kUnit));
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemRelease(handle));
}

TEST_F(VirtualMemoryTest, ReadOnlyMemoryIsReadOnly) {
  const auto handle = create(kUnit);
  EXPECT_MU(muMemMap(range_, kUnit, 0, handle, 0));
  EXPECT_MU(grant(range_, kUnit, MU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  EXPECT_OK(musaMemset(host(range_), 4, kUnit));
  EXPECT_OK(musaDeviceSynchronize());
  EXPECT_MU(grant(range_, kUnit, MU_MEM_ACCESS_FLAGS_PROT_READ));
  EXPECT_EQ(4, read_back(host(range_), 8)[7]);
  EXPECT_OK(musaMemsetAsync(host(range_), 1, 16, nullptr));
  EXPECT_STATUS(musaErrorIllegalAddress, musaDeviceSynchronize());
  EXPECT_OK(musaDeviceReset());
}

TEST_F(VirtualMemoryTest, WorkThatOutlivesItsMappingLosesTheDevice) {
  const auto handle = create(kUnit);
  EXPECT_MU(muMemMap(range_, kUnit, 0, handle, 0));
  EXPECT_MU(grant(range_, kUnit, MU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  Stream stream;
  Blocker blocker(stream);
  EXPECT_OK(musaMemsetAsync(host(range_), 1, kUnit, stream));
  EXPECT_MU(muMemUnmap(range_, kUnit)) << "unmapping does not wait";
  blocker.release();
  EXPECT_STATUS(musaErrorIllegalAddress, musaStreamSynchronize(stream));
  EXPECT_OK(musaDeviceReset()); // destroys the stream and frees the memory
  EXPECT_DRIVER(MUSA_ERROR_INVALID_VALUE, muMemRelease(handle));
  EXPECT_OK(musaStreamCreateWithFlags(&stream.handle, musaStreamNonBlocking));
}

TEST_F(VirtualMemoryTest, AKernelWithoutAccessLosesTheDevice) {
  const auto handle = create(kUnit);
  EXPECT_MU(muMemMap(range_, kUnit, 0, handle, 0));
  const auto write = [](void* pointer) {
    *static_cast<volatile char*>(pointer) = 1;
    return musaSuccess;
  };
  EXPECT_OK(musaEmulatorLaunchTask(nullptr, "write", write, host(range_), nullptr));
  EXPECT_STATUS(musaErrorIllegalAddress, musaDeviceSynchronize());
  EXPECT_OK(musaDeviceReset());
}

TEST_F(VirtualMemoryTest, PeersMayBeGrantedAccess) {
  const Mapped mapped(kUnit, /*device=*/1);
  EXPECT_MU(grant(mapped.address, kUnit, MU_MEM_ACCESS_FLAGS_PROT_READWRITE, 0));
  EXPECT_MU(grant(mapped.address, kUnit, MU_MEM_ACCESS_FLAGS_PROT_NONE, 1));
  EXPECT_OK(musaMemset(host(mapped.address), 2, kUnit)) << "device 0 is current";
  EXPECT_EQ(2, read_back(host(mapped.address), 4)[0]);
  const DeviceArray<char> target(kUnit);
  EXPECT_OK(musaMemcpyPeer(target, 0, host(mapped.address), 1, kUnit));
  EXPECT_EQ(2, read_back(target.data, kUnit).back());
  EXPECT_OK(musaDeviceSynchronize());
}

TEST_F(VirtualMemoryTest, FreshMemoryIsPoisoned) {
  configure({{"MUSA_EMULATOR_POISON", "1"}});
  reserve_again();
  const Mapped mapped(kUnit);
  EXPECT_EQ(static_cast<char>(0xCD), read_back(host(mapped.address), kUnit).back());
}

TEST_F(VirtualMemoryTest, StrictMemoryIsOpenToTheSdkAlone) {
  configure({{"MUSA_EMULATOR_MEMORY", "strict"}});
  reserve_again();
  const Mapped mapped(2 * kUnit);
  EXPECT_OK(musaMemset(host(mapped.address), 8, 2 * kUnit));
  EXPECT_EQ(8, read_back(host(mapped.address), 2 * kUnit).back());
  const auto increment = [](void* pointer) {
    ++*static_cast<char*>(pointer);
    return musaSuccess;
  };
  EXPECT_OK(musaEmulatorLaunchTask(nullptr, "increment", increment, host(mapped.address), nullptr));
  EXPECT_EQ(9, read_back(host(mapped.address), 1)[0]);
  EXPECT_OK(musaDeviceSynchronize());
  EXPECT_DEATH(++*host(mapped.address), "host code accessed device memory");
}

TEST_F(VirtualMemoryTest, HostAccessToUnmappedAddressesIsExplained) {
  EXPECT_DEATH(++*host(range_), "nothing is mapped");
  const auto handle = create(kUnit);
  EXPECT_MU(muMemMap(range_, kUnit, 0, handle, 0));
  EXPECT_DEATH(++*host(range_), "muMemSetAccess");
  EXPECT_MU(muMemUnmap(range_, kUnit));
  EXPECT_MU(muMemRelease(handle));
}

TEST_F(VirtualMemoryTest, EachCallCanFailAndIsCounted) {
  const auto calls = musaEmulatorApiCallCount("muMemCreate");
  EXPECT_OK(musaEmulatorFailNext("muMemCreate", musaErrorMemoryAllocation));
  MUmemGenericAllocationHandle handle = 0;
  const MUmemAllocationProp prop = on_device(0);
  EXPECT_DRIVER(MUSA_ERROR_OUT_OF_MEMORY, muMemCreate(&handle, kUnit, &prop, 0));
  handle = create(kUnit);
  EXPECT_EQ(calls + 2, musaEmulatorApiCallCount("muMemCreate"));
  EXPECT_OK(musaEmulatorFailNext("muMemMap", musaErrorUnknown));
  EXPECT_DRIVER(MUSA_ERROR_UNKNOWN, muMemMap(range_, kUnit, 0, handle, 0));
  EXPECT_MU(muMemMap(range_, kUnit, 0, handle, 0)) << "a failing call does nothing";
  EXPECT_OK(musaEmulatorFailNext("muMemSetAccess", musaErrorUnknown));
  EXPECT_DRIVER(MUSA_ERROR_UNKNOWN, grant(range_, kUnit, MU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  EXPECT_OK(musaEmulatorFailNext("muMemUnmap", musaErrorUnknown));
  EXPECT_DRIVER(MUSA_ERROR_UNKNOWN, muMemUnmap(range_, kUnit)) << "reports, and unmaps";
  EXPECT_OK(musaEmulatorFailNext("muMemRelease", musaErrorUnknown));
  EXPECT_DRIVER(MUSA_ERROR_UNKNOWN, muMemRelease(handle)) << "reports, and releases";
  EXPECT_EQ(0u, musaEmulatorLiveAllocations(0));
  EXPECT_OK(musaGetLastError()) << "the driver leaves the runtime's error alone";
}

TEST_F(VirtualMemoryTest, DevicesMayLackIt) {
  EXPECT_MU(muMemAddressFree(range_, kRange));
  configure({{"MUSA_EMULATOR_VIRTUAL_MEMORY", "0"}});
  int supported = 1;
  EXPECT_MU(muDeviceGetAttribute(&supported, MU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED, 0));
  EXPECT_EQ(0, supported);
  EXPECT_DRIVER(MUSA_ERROR_NOT_SUPPORTED, muMemAddressReserve(&range_, kRange, 0, 0, 0));
  configure({{"MUSA_EMULATOR_VIRTUAL_MEMORY", "1"}});
  reserve_again();
}

TEST_F(VirtualMemoryTest, OnlyWhatWasMadeShareableIsExported) {
  const auto handle = create(kUnit);
  int descriptor = -1;
  EXPECT_DRIVER(
      MUSA_ERROR_INVALID_VALUE,
      muMemExportToShareableHandle(&descriptor, handle, MU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  EXPECT_MU(muMemRelease(handle));
  MUmemGenericAllocationHandle imported = 0;
  const int file = open("/proc/self/exe", O_RDONLY);
  EXPECT_DRIVER(
      MUSA_ERROR_INVALID_VALUE,
      muMemImportFromShareableHandle(
          &imported, reinterpret_cast<void*>(static_cast<uintptr_t>(file)), MU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
      << "any other file";
  close(file);
}

namespace {

// Imports the descriptor, adds one to the first byte, and returns the byte that it found.
int import_and_increment(int descriptor) {
  MUmemGenericAllocationHandle handle = 0;
  MUdeviceptr address = 0;
  if (muMemImportFromShareableHandle(
          &handle, reinterpret_cast<void*>(static_cast<uintptr_t>(descriptor)),
          MU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != MUSA_SUCCESS ||
      musaEmulatorLiveBytes(1) != 0 || // counted for the exporter
      muMemAddressReserve(&address, kUnit, 0, 0, 0) != MUSA_SUCCESS ||
      muMemMap(address, kUnit, 0, handle, 0) != MUSA_SUCCESS ||
      grant(address, kUnit, MU_MEM_ACCESS_FLAGS_PROT_READWRITE, 1) != MUSA_SUCCESS) {
    return 100;
  }
  musaPointerAttributes attributes = {};
  if (musaPointerGetAttributes(&attributes, host(address)) != musaSuccess || attributes.device != 1) {
    return 101;
  }
  char value = 0;
  if (musaMemcpy(&value, host(address), 1, musaMemcpyDeviceToHost) != musaSuccess) {
    return 102;
  }
  const char next = static_cast<char>(value + 1);
  return musaMemcpy(host(address), &next, 1, musaMemcpyHostToDevice) == musaSuccess ? value : 103;
}

} // namespace

int run_virtual_memory_child(int argc, char** argv) {
  return argc > 2 ? import_and_increment(std::atoi(argv[2])) : 104;
}

TEST_F(VirtualMemoryTest, AnotherProcessMapsAnExportedAllocation) {
  const auto handle = create(kUnit, /*device=*/1, /*shareable=*/true);
  EXPECT_MU(muMemMap(range_, kUnit, 0, handle, 0));
  EXPECT_MU(grant(range_, kUnit, MU_MEM_ACCESS_FLAGS_PROT_READWRITE, 1));
  EXPECT_OK(musaMemset(host(range_), 42, kUnit));
  EXPECT_OK(musaDeviceSynchronize());
  int descriptor = -1;
  ASSERT_MU(muMemExportToShareableHandle(&descriptor, handle, MU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  fcntl(descriptor, F_SETFD, 0);
  const std::string number = std::to_string(descriptor);
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "emulator_tests", "--virtual-memory-child", number.c_str(), nullptr);
    _exit(127);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(42, WEXITSTATUS(status));
  EXPECT_EQ(43, read_back(host(range_), 1)[0]) << "the pages are shared";
  close(descriptor);
  EXPECT_MU(muMemUnmap(range_, kUnit));
  EXPECT_MU(muMemRelease(handle));
}
