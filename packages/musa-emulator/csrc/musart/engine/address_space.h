// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A reserved address range in which allocations are committed.
//
// Not synchronized: the memory lock (memory.h) guards every instance.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>

namespace musa_emulator {

// In bytes: 4096 on x86-64; aarch64 kernels may use 16 or 64 KiB.
size_t page_size();

struct Allocation {
  size_t bytes = 0;      // as requested
  size_t span = 0;       // whole pages
  int device = 0;        // the owner; for host memory, the device that was current
  int descriptor = -1;   // the shared pages, after an export to or import from another process
  bool imported = false;
  int open = 0;          // strict memory: number of scopes that need access
};

class AddressSpace {
 public:
  AddressSpace() = default;
  // `published`: where the bytes in use are stored too, for other processes; may be null.
  AddressSpace(uintptr_t base, size_t size, size_t guard, std::atomic<uint64_t>* published = nullptr);

  // First-fit allocation of readable, writable, zeroed pages. The base is null if there is no address range or memory
  // left.
  uintptr_t allocate(size_t bytes, Allocation description);
  // As allocate(), with shared pages instead of new ones.
  uintptr_t map_shared(size_t bytes, int descriptor, Allocation description);
  // Frees the pages; the addresses fault afterwards. Returns false if `base` is not the start of an allocation.
  bool release(uintptr_t base);
  // Returns the allocation that contains the address, or end().
  using Iterator = std::map<uintptr_t, Allocation>::iterator;
  Iterator find(uintptr_t address);
  std::map<uintptr_t, Allocation>& allocations() { return allocations_; }

  // Bytes charged to the owner: pages that it allocated, not pages that it imported.
  size_t used() const { return used_; }
  // Charges memory that is not in this range.
  void charge(size_t bytes) { set_used(used_ + bytes); }
  void refund(size_t bytes) { set_used(used_ - bytes); }

  // Reserves addresses only; the caller maps pages itself.
  uintptr_t take(size_t span, size_t alignment);
  void give_back(uintptr_t base, size_t span);

 private:
  void set_used(size_t bytes) {
    used_ = bytes;
    if (published_ != nullptr) {
      published_->store(bytes, std::memory_order_relaxed);
    }
  }

  std::atomic<uint64_t>* published_ = nullptr;
  size_t guard_ = 0; // inaccessible bytes after each allocation
  size_t used_ = 0;
  std::map<uintptr_t, size_t> free_;
  std::map<uintptr_t, Allocation> allocations_;
};

} // namespace musa_emulator
