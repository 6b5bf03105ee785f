// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/allocator/MUSACacheState.h>
#include <c10/musa/allocator/MUSAExpandableSegment.h>

#include <memory>
#include <optional>
#include <vector>

namespace c10::musa::MUSACachingAllocator {

// The expandable segments of one device. Guarded by the mutex of the allocator, which stays locked.
class ExpandableSegments {
 public:
  explicit ExpandableSegments(CacheState& cache) : cache_(cache) {}

  // Whether new memory is mapped into expandable segments: if the setting is on and the device supports it.
  bool enabled();
  // Maps the fewest new pages that make a free block of at least `size` bytes, and returns that block, in no bin. The
  // device must be current. Returns nullptr if the device or the limit has no room, and nullopt if no addresses are left.
  std::optional<Block*> add(StreamPool& home, size_t size);

  // Gives a device access to the memory, and to memory that is mapped from now on.
  void allow_peer(DeviceIndex peer);

  // Takes the whole pages out of a free block. Their block stays in the list of its neighbours, so that it can return
  // whatever happens to those in between; it is in no bin, and pending, so that it is neither allocated nor merged. The
  // caller then unmaps the pages without the mutex and calls finish(), or restore() if it did not try.
  Block* detach(Block* block);
  void restore(Block* block);
  musaError_t finish(Block* block);

  // Whether a segment's addresses are reserved for the pool.
  bool has_addresses_of(const MemoryPool& pool) const;

 private:
  // The block that ends where a page begins; nullptr if nothing is mapped before the page.
  Block* block_before(const ExpandableSegment& segment, size_t page);
  // Inserts the block of newly mapped pages between its neighbours and joins it with the free ones. Returns the joined
  // block.
  Block* link_pages(Block* block);
  // Frees the addresses if no page is mapped to them or lost.
  DriverOutcome drop_if_unused(ExpandableSegment* segment);

  CacheState& cache_;
  std::vector<std::unique_ptr<ExpandableSegment>> segments_; // those in use
  std::vector<DeviceIndex> peers_; // other devices with access
  std::optional<size_t>
      page_unit_; // the device's allocation granularity, 0 without virtual memory; read at the first use
};

} // namespace c10::musa::MUSACachingAllocator
