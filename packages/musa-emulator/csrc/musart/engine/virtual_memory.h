// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The driver's virtual memory management: reserved addresses, physical memory, and the mappings between them.
//
// Physical memory consists of pages of an anonymous file, so it can be mapped at any number of addresses and in other
// processes. Exportable memory has a descriptor of its own; all other memory of a device shares one, because one per
// allocation would exhaust the process's descriptors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/operation.h"
#include "engine/thread_state.h"

namespace musa_emulator {

struct Memory;

// Sizes and addresses in these calls must be multiples of this.
inline constexpr size_t kGranularity = size_t{2} << 20;

struct AccessGrant {
  int device;
  bool read;
  bool write;
};

// Return the results of the driver calls with the same purpose.
MUSA_ENGINE musaError_t reserve_addresses(size_t bytes, size_t alignment, uintptr_t* address);
MUSA_ENGINE musaError_t free_addresses(uintptr_t address, size_t bytes);
MUSA_ENGINE musaError_t create_physical(int device, size_t bytes, bool shareable, uint64_t* handle);
MUSA_ENGINE musaError_t release_physical(uint64_t handle);
MUSA_ENGINE musaError_t map_physical(uintptr_t address, size_t bytes, size_t offset, uint64_t handle);
MUSA_ENGINE musaError_t unmap_addresses(uintptr_t address, size_t bytes);
MUSA_ENGINE musaError_t grant_access(uintptr_t address, size_t bytes, const std::vector<AccessGrant>& grants);
MUSA_ENGINE musaError_t export_physical(uint64_t handle, int* descriptor);
MUSA_ENGINE musaError_t import_physical(int descriptor, uint64_t* handle);

// Whether a device may access the whole range now. Returns true outside the reserved addresses, which are checked
// elsewhere.
bool may_touch(const void* pointer, size_t bytes, bool write);

// The functions below require the memory lock.
void release_virtual_memory(Memory& m, int device); // of one device
void release_virtual_memory(Memory& m);             // of all devices, including addresses
size_t live_physical(Memory& m, int device);
// Strict memory: give the calling code a device's access to mappings, and revoke it.
void open_mappings(Memory& m, uintptr_t address, size_t bytes);
void close_mappings(Memory& m, uintptr_t address, size_t bytes);
// Called after `everything_open` has become one or zero.
void refresh_mappings(Memory& m);
// Used by the fault handler.
void describe_virtual(Memory& m, uintptr_t address, char* text, size_t capacity);

} // namespace musa_emulator
