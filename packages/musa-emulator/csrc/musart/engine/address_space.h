// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// One range of reserved addresses, out of which allocations are committed.
//
// Not synchronised: the memory lock (memory.h) guards every instance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace musa_emulator {

// In bytes: 4096 on x86-64; kernels for aarch64 may have pages of 16 or 64 KiB.
size_t page_size();

struct Allocation {
  size_t bytes = 0;      // as requested
  size_t span = 0;       // whole pages
  int device = 0;        // owner, or for host memory the device that was current
  unsigned flags = 0;    // of musaHostAlloc
  int descriptor = -1;   // of the shared pages, once exported to or imported from another process
  bool imported = false;
  int open = 0;          // strict memory: scopes that need access
};

class AddressSpace {
 public:
  AddressSpace() = default;
  AddressSpace(uintptr_t base, size_t size, size_t guard);

  // First fit. The pages are readable and writable, and zero. Null base when no address range or memory is left.
  uintptr_t allocate(size_t bytes, Allocation description);
  // Maps shared pages instead of fresh ones.
  uintptr_t map_shared(size_t bytes, int descriptor, Allocation description);
  // Gives the pages back; the addresses fault from then on. False when `base` is not the start of an allocation.
  bool release(uintptr_t base);
  // The allocation that holds the address, or end().
  using Iterator = std::map<uintptr_t, Allocation>::iterator;
  Iterator find(uintptr_t address);
  std::map<uintptr_t, Allocation>& allocations() { return allocations_; }

  // Pages charged to the owner: those it allocated, not those it imported.
  size_t used() const { return used_; }
  // Of memory that lies elsewhere.
  void charge(size_t bytes) { used_ += bytes; }
  void refund(size_t bytes) { used_ -= bytes; }

  // Addresses alone, for who maps pages of its own.
  uintptr_t take(size_t span, size_t alignment);
  void give_back(uintptr_t base, size_t span);

 private:
  size_t guard_ = 0; // bytes left inaccessible behind each allocation
  size_t used_ = 0;
  std::map<uintptr_t, size_t> free_;
  std::map<uintptr_t, Allocation> allocations_;
};

} // namespace musa_emulator
