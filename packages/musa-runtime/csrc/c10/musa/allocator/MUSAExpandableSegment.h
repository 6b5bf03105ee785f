// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/allocator/MUSABlockPool.h>
#include <musa.h>

#include <memory>
#include <optional>
#include <vector>

namespace c10::musa::MUSACachingAllocator {

// The outcome of a series of driver calls: the first failure and the call that failed.
struct DriverOutcome {
  MUresult error = MUSA_SUCCESS;
  const char* call = "";

  bool ok() const { return error == MUSA_SUCCESS; }
};

// The properties with which physical memory of a device is created.
MUmemAllocationProp device_memory(DeviceIndex device);

// A reserved range of addresses that is larger than the device's memory, in which pages of physical memory are mapped as
// needed. It replaces many segments of fixed size, each with an unusable rest, by one that grows at its end and can release
// any page that is free as a whole.
//
// The blocks of a stretch of mapped pages form a list, like those of an ordinary segment; an unmapped page has no block.
//
// Locking: the allocator's mutex guards everything except the handles of pages being unmapped, which belong to the thread
// that unmaps them.
class ExpandableSegment {
 public:
  // Reserves addresses for at least `bytes`, in pages of this size. Null, with a failure in *outcome, if the driver
  // refuses.
  static std::unique_ptr<ExpandableSegment> reserve(
      DeviceIndex device, StreamPool& home, size_t page, size_t bytes, DriverOutcome* outcome);
  // The pages must be unmapped; lost pages keep the addresses reserved for ever.
  DriverOutcome free_addresses();

  // Maps new memory to empty pages, which the device and `peers` may then access. Runs under the allocator's mutex, like
  // musaMalloc: none of the calls waits for queued work, because no work uses the pages yet. Undone if it fails on the way.
  DriverOutcome map(size_t first, size_t count, const std::vector<DeviceIndex>& peers);
  // Gives a device access to the mapped pages.
  DriverOutcome allow_peer(DeviceIndex peer);
  // Unmaps and frees the memory of leaving pages. Not under the mutex: the driver may wait. Continues after a failure; a
  // page that could not be unmapped is lost.
  DriverOutcome unmap(size_t first, size_t count);

  // A page is empty, mapped, leaving (being unmapped) or lost.
  void mark_leaving(size_t first, size_t count);
  void mark_mapped(size_t first, size_t count);
  void mark_unmapped(size_t first, size_t count);
  bool unused() const { return top_ == 0; }

  // Calls visit(first, count) for each stretch of empty pages, in address order.
  template <typename Visit>
  void for_each_gap(Visit visit) const {
    for_each_stretch(Page::Empty, visit);
    if (top_ < count_) {
      visit(top_, count_ - top_);
    }
  }

  // The first of the whole pages within a block, and their number.
  std::pair<size_t, size_t> pages_of(const Block& block) const {
    const size_t begin = static_cast<size_t>(block.ptr - base_);
    const size_t first = (begin + page_ - 1) / page_;
    const size_t end = (begin + block.size) / page_;
    return {first, end > first ? end - first : 0};
  }
  // The first page of the stretch of mapped and leaving pages that ends before `page`.
  size_t stretch_before(size_t page) const {
    while (page > 0 && (pages_[page - 1] == Page::Mapped || pages_[page - 1] == Page::Leaving)) {
      --page;
    }
    return page;
  }
  char* address(size_t page) const { return base_ + page * page_; }
  size_t page_size() const { return page_; }
  const StreamPool& home() const { return home_; }

 private:
  enum class Page : uint8_t { Empty, Mapped, Leaving, Lost };

  ExpandableSegment(DeviceIndex device, StreamPool& home, char* base, size_t page, size_t count);
  void set(size_t first, size_t count, Page state);
  // Calls visit(first, count) for each stretch of pages in a state, below top_ and in address order.
  template <typename Visit>
  void for_each_stretch(Page state, Visit visit) const {
    for (size_t first = 0; first < top_; ++first) {
      size_t end = first;
      while (end < top_ && pages_[end] == state) {
        ++end;
      }
      if (end != first) {
        visit(first, end - first);
      }
      first = end;
    }
  }
  DriverOutcome set_access(size_t first, size_t count, const std::vector<DeviceIndex>& devices);

  const DeviceIndex device_;
  StreamPool& home_;
  char* const base_;
  const size_t page_;
  const size_t count_;
  size_t top_ = 0; // pages from here on are empty
  std::vector<Page> pages_;
  std::vector<MUmemGenericAllocationHandle> handles_;
};

// Whether releasing the block, or some of its pages, returns memory to the device.
inline bool is_releasable(const Block& block) {
  return block.expandable != nullptr ? block.expandable->pages_of(block).second != 0 : block.whole_segment();
}

} // namespace c10::musa::MUSACachingAllocator
