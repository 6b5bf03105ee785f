// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The driver's virtual memory management: reserved addresses, physical memory, and the mappings between them.
//
// Physical memory is file pages without a file system entry, so that it can appear at any address, at several, and in
// other processes. What may be exported has a descriptor of its own; everything else of a device shares one, since
// thousands of pages would exhaust the process's descriptors.
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

// Unit of sizes and addresses in all of these calls.
inline constexpr size_t kGranularity = size_t{2} << 20;

struct PhysicalMemory {
  size_t bytes = 0;
  int device = 0;
  int descriptor = -1;
  off_t offset = 0;
  bool shareable = false; // the descriptor is its own
  bool imported = false;  // charged to the process that made it
  bool released = false;  // lives on only in its mappings
  size_t mappings = 0;
};

struct Mapping {
  size_t bytes = 0;
  uint64_t handle = 0;
  // One bit for each device.
  uint64_t readers = 0;
  uint64_t writers = 0;
  int open = 0; // strict memory: scopes that need access
};

struct AccessGrant {
  int device;
  bool read;
  bool write;
};

// Not synchronised: the memory lock (memory.h) guards it, and the functions below take that lock.
class VirtualMemory {
 public:
  std::map<uintptr_t, size_t> reservations;
  std::map<uint64_t, PhysicalMemory> physical;
  std::map<uintptr_t, Mapping> mappings;
  uint64_t next_handle = 1; // handles are never reused, so a stale one is recognised

  // The mapping that holds the address, or end().
  std::map<uintptr_t, Mapping>::iterator find(uintptr_t address);
  // Whether mappings cover the whole range, without a gap; and grant some device the access asked for.
  bool mapped(uintptr_t address, size_t bytes);
  bool accessible(uintptr_t address, size_t bytes, bool write);
  int device_of(const Mapping& mapping) const { return physical.at(mapping.handle).device; }

  // The descriptor and the end of the pages of each device that are not shareable. Offsets are not reused: holes cost
  // nothing.
  struct Pages {
    int descriptor = -1;
    off_t end = 0;
  };
  std::map<int, Pages> pages;
};

// All return what the driver's call of the same purpose returns.
MUSA_ENGINE musaError_t reserve_addresses(size_t bytes, size_t alignment, uintptr_t* address);
MUSA_ENGINE musaError_t free_addresses(uintptr_t address, size_t bytes);
MUSA_ENGINE musaError_t create_physical(int device, size_t bytes, bool shareable, uint64_t* handle);
MUSA_ENGINE musaError_t release_physical(uint64_t handle);
MUSA_ENGINE musaError_t map_physical(uintptr_t address, size_t bytes, size_t offset, uint64_t handle);
MUSA_ENGINE musaError_t unmap_addresses(uintptr_t address, size_t bytes);
MUSA_ENGINE musaError_t grant_access(uintptr_t address, size_t bytes, const std::vector<AccessGrant>& grants);
MUSA_ENGINE musaError_t export_physical(uint64_t handle, int* descriptor);
MUSA_ENGINE musaError_t import_physical(int descriptor, uint64_t* handle);

// Whether a device may touch all of the range now. True for addresses outside the reserved ones: others judge those.
bool may_touch(const void* pointer, size_t bytes, bool write);

// Below: with the memory lock held.
void release_virtual_memory(Memory& m, int device); // of one device
void release_virtual_memory(Memory& m);             // all, addresses included
size_t live_physical(Memory& m, int device);
// Strict memory: lets the caller touch what a device may touch, and takes that back.
void open_mappings(Memory& m, uintptr_t address, size_t bytes);
void close_mappings(Memory& m, uintptr_t address, size_t bytes);
// After `everything_open` has become one or zero.
void refresh_mappings(Memory& m);
// For the fault handler.
void describe_virtual(Memory& m, uintptr_t address, char* text, size_t capacity);

} // namespace musa_emulator
