// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Tables of the driver's virtual memory management.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>

namespace musa_emulator {

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

// Not synchronized: guarded by the memory lock (memory.h), which the functions of virtual_memory.h acquire.
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

} // namespace musa_emulator
