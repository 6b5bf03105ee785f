// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The tables of memory.h, shared by the files that implement it. Not for other files.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "engine/address_space.h"
#include "engine/mappings.h"
#include "engine/state.h"

namespace musa_emulator {

struct Registration {
  size_t bytes;
  int device;
  musaMemoryType type = musaMemoryTypeHost; // musaMemoryTypeManaged for device variables
};

struct Memory {
  std::mutex mutex;

  // Constant between resets. One reservation, divided into slots of equal size: one per device, one for page-locked
  // and one for managed memory, and several slots as one range for the driver's virtual memory management.
  uintptr_t base = 0;
  size_t size = 0;
  int slot_shift = 0;
  int devices = 0;

  // Guarded by the mutex.
  std::vector<AddressSpace> spaces;
  std::map<uintptr_t, Registration> registrations;
  int everything_open = 0; // strict memory: number of scopes that need all device memory
  VirtualMemory virtual_memory;

  // Incremented when an address changes its owner, which invalidates the threads' caches.
  std::atomic<uint64_t> generation{1};
  std::atomic<size_t> registered{0};

  bool reserved(uintptr_t address) const { return address - base < size; }
  int slot_of(uintptr_t address) const {
    return std::min(static_cast<int>((address - base) >> slot_shift), devices + 2);
  }
  bool is_virtual(uintptr_t address) const { return reserved(address) && slot_of(address) == devices + 2; }
  AddressSpace& pinned() { return spaces[static_cast<size_t>(devices)]; }
  AddressSpace& managed() { return spaces[static_cast<size_t>(devices) + 1]; }
  AddressSpace& virtual_addresses() { return spaces[static_cast<size_t>(devices) + 2]; }
};

Memory& memory();

using MemoryLock = std::lock_guard<std::mutex>;

inline bool strict() { return engine().config.strict; }

} // namespace musa_emulator
