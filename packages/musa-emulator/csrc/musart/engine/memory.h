// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Device, page-locked, registered and managed memory.
//
// One lock of its own guards all tables here; it is taken after the engine's and never before it.
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
MUSA_ENGINE musaError_t allocate_host(size_t bytes, unsigned flags, void** pointer);
MUSA_ENGINE musaError_t free_host(void* pointer);
MUSA_ENGINE musaError_t allocate_managed(size_t bytes, void** pointer);
MUSA_ENGINE musaError_t register_host(void* pointer, size_t bytes, unsigned flags);
MUSA_ENGINE musaError_t unregister_host(void* pointer);
// A variable of a program's kernels is in the program's own memory. Once known here, it is reachable from both sides.
MUSA_ENGINE void register_symbol(const void* variable, size_t bytes);
MUSA_ENGINE size_t symbol_size(const void* variable); // 0 for anything else
MUSA_ENGINE musaError_t host_flags(const void* pointer, unsigned* flags);
MUSA_ENGINE void memory_usage(int device, size_t* used, size_t* total);

// The memory that holds the address, found without a lock when the thread looked there before.
MUSA_ENGINE PointerInfo classify(const void* pointer);
// Device ordinal of the range that holds the address, allocated or not; -1 outside device ranges.
int device_of_range(uintptr_t address);

MUSA_ENGINE size_t live_allocations(int device);
MUSA_ENGINE size_t live_bytes(int device);
MUSA_ENGINE size_t live_host_allocations();
MUSA_ENGINE size_t live_host_bytes();

// Whether a transfer of this kind between these addresses is legal, and of how many bytes from each.
MUSA_ENGINE musaError_t check_transfer(
    const void* dst, size_t dst_bytes, const void* src, size_t src_bytes, musaMemcpyKind kind);
// Whether `bytes` from `pointer` on lie in memory that a device can write.
MUSA_ENGINE musaError_t check_fill(const void* pointer, size_t bytes);

// Inter-process sharing: replaces the allocation's pages by shared ones, once, and returns their descriptor.
musaError_t share_allocation(void* pointer, int* descriptor, size_t* bytes, int* device);
musaError_t map_shared(int device, int descriptor, size_t bytes, void** pointer);
musaError_t unmap_shared(void* pointer);

// Makes device memory accessible to the calling code while in scope. Does nothing unless memory is strict.
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

// For the fault handler: describes the address without allocating. Returns false outside the reserved ranges.
bool describe_address(uintptr_t address, char* text, size_t capacity);

} // namespace musa_emulator
