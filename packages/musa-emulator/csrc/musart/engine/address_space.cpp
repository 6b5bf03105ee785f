// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/address_space.h"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

namespace musa_emulator {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

constexpr size_t round_up(size_t value, size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

} // namespace

size_t page_size() {
  static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

AddressSpace::AddressSpace(uintptr_t base, size_t size, size_t guard, std::atomic<uint64_t>* published)
    : published_(published), guard_(guard) {
  free_.emplace(base, size);
}

uintptr_t AddressSpace::take(size_t span, size_t alignment) {
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    const auto [begin, size] = *range;
    const uintptr_t base = round_up(begin, alignment);
    const size_t skipped = base - begin;
    if (size < skipped || size - skipped < span) {
      continue;
    }
    free_.erase(range);
    if (skipped != 0) {
      free_.emplace(begin, skipped);
    }
    if (size - skipped != span) {
      free_.emplace(base + span, size - skipped - span);
    }
    return base;
  }
  return 0;
}

void AddressSpace::give_back(uintptr_t base, size_t span) {
  auto next = free_.lower_bound(base);
  if (next != free_.end() && base + span == next->first) {
    span += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == base) {
      before->second += span;
      return;
    }
  }
  free_.emplace(base, span);
}

uintptr_t AddressSpace::allocate(size_t bytes, Allocation description) {
  if (bytes > SIZE_MAX / 2) {
    return 0;
  }
  const size_t span = round_up(bytes, page_size());
  const bool huge = span >= kHugePage;
  const uintptr_t base = take(span + guard_, huge ? kHugePage : page_size());
  if (base == 0) {
    return 0;
  }
  void* pages = reinterpret_cast<void*>(base);
  if (mprotect(pages, span, PROT_READ | PROT_WRITE) != 0) {
    give_back(base, span + guard_);
    return 0;
  }
  if (huge) {
    // First-touch faults dominate the cost of large operations; huge pages make them 512 times fewer. A kernel
    // without huge pages uses small ones, which is correct too.
    madvise(pages, span, MADV_HUGEPAGE);
  }
  description.bytes = bytes;
  description.span = span;
  allocations_.emplace(base, description);
  charge(span);
  return base;
}

uintptr_t AddressSpace::map_shared(size_t bytes, int descriptor, Allocation description) {
  const size_t span = round_up(bytes, page_size());
  const uintptr_t base = take(span + guard_, span >= kHugePage ? kHugePage : page_size());
  if (base == 0) {
    return 0;
  }
  void* pages = reinterpret_cast<void*>(base);
  if (mmap(pages, span, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0) == MAP_FAILED) {
    give_back(base, span + guard_);
    return 0;
  }
  description.bytes = bytes;
  description.span = span;
  description.descriptor = descriptor;
  description.imported = true;
  allocations_.emplace(base, description);
  return base;
}

bool AddressSpace::release(uintptr_t base) {
  const auto found = allocations_.find(base);
  if (found == allocations_.end()) {
    return false;
  }
  const Allocation& allocation = found->second;
  // One call that frees the pages and makes the addresses inaccessible: a new reservation over the old mapping.
  mmap(
      reinterpret_cast<void*>(base), allocation.span, PROT_NONE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (allocation.descriptor >= 0) {
    close(allocation.descriptor);
  }
  if (!allocation.imported) {
    refund(allocation.span);
  }
  give_back(base, allocation.span + guard_);
  allocations_.erase(found);
  return true;
}

AddressSpace::Iterator AddressSpace::find(uintptr_t address) {
  auto next = allocations_.upper_bound(address);
  if (next == allocations_.begin()) {
    return allocations_.end();
  }
  --next;
  return address - next->first < next->second.bytes ? next : allocations_.end();
}

} // namespace musa_emulator
