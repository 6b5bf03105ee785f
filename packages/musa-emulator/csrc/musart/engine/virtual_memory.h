// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The driver's virtual memory management: reserved addresses, physical memory, and the mappings between them.
//
// Physical memory consists of pages of an anonymous file, so it can be mapped at any number of addresses and in other
// processes. Exportable memory has a descriptor of its own; all other memory of a device shares one, because one per
// allocation would exhaust the process's descriptors.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "engine/operation.h"
#include "engine/thread_state.h"

namespace musa_emulator {

struct Memory;

// Sizes and addresses in these calls must be multiples of this.
inline constexpr size_t kGranularity = size_t{2} << 20;

struct PhysicalMemory {
  size_t bytes = 0;
  int device = 0;
  int descriptor = -1;
  off_t offset = 0;
  bool shareable = false; // has a descriptor of its own
  bool imported = false;  // charged to the process that created it
  bool released = false;  // kept alive only by its mappings
  size_t mappings = 0;
};

struct Mapping {
  size_t bytes = 0;
  uint64_t handle = 0;
  // One bit per device.
  uint64_t readers = 0;
  uint64_t writers = 0;
  int open = 0; // strict memory: number of scopes that need access
};

struct AccessGrant {
  int device;
  bool read;
  bool write;
};

// Not synchronized: guarded by the memory lock (memory.h), which the functions below acquire.
class VirtualMemory {
 public:
  std::map<uintptr_t, size_t> reservations;
  std::map<uint64_t, PhysicalMemory> physical;
  std::map<uintptr_t, Mapping> mappings;
  uint64_t next_handle = 1; // handles are never reused, so a stale one is detected

  // Returns the mapping that contains the address, or end().
  std::map<uintptr_t, Mapping>::iterator find(uintptr_t address);
  // Whether mappings cover the whole range; accessible(): and give a device the requested access.
  bool mapped(uintptr_t address, size_t bytes);
  bool accessible(uintptr_t address, size_t bytes, bool write);
  int device_of(const Mapping& mapping) const { return physical.at(mapping.handle).device; }

  // The shared descriptor of each device, and the end of its used pages. Offsets are not reused, because holes use no
  // memory.
  struct Pages {
    int descriptor = -1;
    off_t end = 0;
  };
  std::map<int, Pages> pages;
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
