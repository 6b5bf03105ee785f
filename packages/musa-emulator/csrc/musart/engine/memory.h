// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Device, page-locked, registered and managed memory.
//
// A separate lock guards all tables here; it is acquired after the engine's lock, never before it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "driver_types.h"
#include "engine/export.h"
#include "engine/operation.h"
#include "engine/thread_state.h"

namespace musa_emulator {

struct Engine;

// Reserves the address ranges: one per device, one for page-locked and one for managed memory.
void reserve_memory(Engine& state);
void release_all_memory(Engine& state);
void release_device_memory(int device);

MUSA_ENGINE musaError_t allocate_device(int device, size_t bytes, void** pointer);
MUSA_ENGINE musaError_t free_device(void* pointer);
MUSA_ENGINE musaError_t allocate_host(size_t bytes, void** pointer);
MUSA_ENGINE musaError_t free_host(void* pointer);
MUSA_ENGINE musaError_t allocate_managed(size_t bytes, void** pointer);
MUSA_ENGINE musaError_t register_host(void* pointer, size_t bytes);
MUSA_ENGINE musaError_t unregister_host(void* pointer);
// Registers a device variable, which is in the program's own memory, as accessible from host and device.
MUSA_ENGINE void register_symbol(const void* variable, size_t bytes);
MUSA_ENGINE size_t symbol_size(const void* variable); // 0 if not registered
MUSA_ENGINE void memory_usage(int device, size_t* used, size_t* total);

// Returns the memory that contains the address. Needs no lock if the thread's cache contains it.
MUSA_ENGINE PointerInfo classify(const void* pointer);
// Ordinal of the device whose address range contains the address, allocated or not; -1 if there is none.
int device_of_range(uintptr_t address);

MUSA_ENGINE size_t live_allocations(int device);
MUSA_ENGINE size_t live_bytes(int device);
MUSA_ENGINE size_t live_host_allocations();
MUSA_ENGINE size_t live_host_bytes();

// Checks a transfer of this kind: the direction, and the number of bytes on each side.
MUSA_ENGINE musaError_t
check_transfer(const void* dst, size_t dst_bytes, const void* src, size_t src_bytes, musaMemcpyKind kind);
// Checks that the device can write `bytes` bytes from `pointer` on.
MUSA_ENGINE musaError_t check_fill(const void* pointer, size_t bytes);

// Inter-process sharing: replaces the allocation's pages by shared ones at the first call. Returns their descriptor.
musaError_t share_allocation(void* pointer, int* descriptor, size_t* bytes, int* device);
musaError_t map_shared(int device, int descriptor, size_t bytes, void** pointer);
musaError_t unmap_shared(void* pointer);

// Makes device memory accessible to the calling code while in scope. Has no effect unless memory is strict.
class MUSA_ENGINE MemoryAccess {
 public:
  struct Everything {};
  explicit MemoryAccess(Everything);
  MemoryAccess(const void* first, size_t first_bytes, const void* second, size_t second_bytes);
  ~MemoryAccess();
  MemoryAccess(const MemoryAccess&) = delete;
  MemoryAccess& operator=(const MemoryAccess&) = delete;

 private:
  bool everything_ = false;
  uintptr_t opened_[2] = {0, 0};
  size_t bytes_[2] = {0, 0};
};

// Used by the fault handler: describes the address without allocating. Returns false outside the reserved ranges.
bool describe_address(uintptr_t address, char* text, size_t capacity);

} // namespace musa_emulator
