// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSACacheState.h>
#include <c10/musa/MUSAExpandableSegment.h>

#include <memory>
#include <optional>
#include <vector>

namespace c10::musa::MUSACachingAllocator {

// The expandable segments of one device. Guarded by the mutex of the allocator, which stays locked.
class ExpandableSegments {
 public:
  explicit ExpandableSegments(CacheState& cache) : cache_(cache) {}

  // Whether new memory goes into expandable segments: if the setting asks for it and the device can.
  bool enabled();
  // Maps the fewest new pages that make a free block of at least `size` bytes, and returns that block, in no bin. The device
  // is the current one. Returns nullptr if the device, or the limit, has no room, and nothing if no addresses are left.
  std::optional<Block*> add(StreamPool& home, size_t size);

  // Takes the whole pages out of a free block. Their block stays in the list of its neighbours, so that it can go back
  // whatever happens to those meanwhile; it is in no bin, and pending, so that it is neither taken nor merged. The caller
  // then unmaps the pages without the mutex and calls finish(), or restore() if it did not try.
  Block* detach(Block* block);
  void restore(Block* block);
  musaError_t finish(Block* block);

  // Whether a segment's addresses are reserved for the pool.
  bool has_addresses_of(const MemoryPool& pool) const;

 private:
  // The block that ends where a page begins; nullptr if nothing is mapped before the page.
  Block* block_before(const ExpandableSegment& segment, size_t page);
  // Enters the block of freshly mapped pages between its neighbours and joins it with those that are free. Returns the
  // whole.
  Block* link_pages(Block* block);
  // Frees the addresses if no page is mapped to them or lost.
  DriverOutcome drop_if_unused(ExpandableSegment* segment);

  CacheState& cache_;
  std::vector<std::unique_ptr<ExpandableSegment>> segments_; // those in use
  std::optional<size_t> page_unit_; // the device's unit of virtual memory, 0 without it; read at the first use
};

} // namespace c10::musa::MUSACachingAllocator
