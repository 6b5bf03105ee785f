// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/allocator/MUSAExpandableSegments.h>

#include <c10/musa/MUSAAllocator.h>

#include <algorithm>

namespace c10::musa::MUSACachingAllocator {
namespace {

using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;

constexpr size_t kSmallPage = size_t{2} << 20;
constexpr size_t kLargePage = size_t{20} << 20;

[[noreturn]] void fail(const DriverOutcome& outcome) {
  // The driver's codes equal the runtime's.
  throw_musa_error(static_cast<musaError_t>(outcome.error), outcome.call, __func__, __FILE__, __LINE__);
}

} // namespace

bool ExpandableSegments::enabled() {
  if (!Config::use_expandable_segments() || !isEnabled()) {
    return false;
  }
  if (page_unit_.has_value()) {
    return *page_unit_ != 0;
  }
  int supported = 0;
  DriverOutcome outcome{
      muDeviceGetAttribute(&supported, MU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED, cache_.device),
      "muDeviceGetAttribute(&supported, MU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED, device)"};
  size_t unit = 0;
  if (outcome.ok() && supported != 0) {
    const MUmemAllocationProp prop = device_memory(cache_.device);
    outcome = {
        muMemGetAllocationGranularity(&unit, &prop, MU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
        "muMemGetAllocationGranularity(&unit, &prop, MU_MEM_ALLOC_GRANULARITY_RECOMMENDED)"};
  }
  if (!outcome.ok()) {
    fail(outcome);
  }
  page_unit_ = unit;
  if (unit == 0) {
    // Safe with the mutex held: torch's Python handler stores warnings until its thread is back in Python.
    TORCH_WARN(
        "expandable_segments:True is set, but musa:", static_cast<int>(cache_.device),
        " has no virtual memory management, so memory comes in segments of fixed size.\n",
        "Likely causes: the device does not offer it; the driver is older than 4.0.\n",
        "Fix: update the driver, or take expandable_segments out of PYTORCH_ALLOC_CONF.");
  }
  return unit != 0;
}

std::optional<Block*> ExpandableSegments::add(StreamPool& home, size_t size) {
  const size_t total = cache_.limit.total();
  const size_t page = round_up(home.pool.is_small ? kSmallPage : kLargePage, *page_unit_);
  if (size > total) {
    return nullptr;
  }
  // Free blocks at the ends of mapped stretches count towards the size.
  using Ends = ska::flat_hash_map<const char*, const Block*>;
  Ends free_before; // by the address of the block's end
  Ends free_behind; // by the address of the block
  home.free.for_each([&](const Block* block) {
    if (block->expandable != nullptr && block->next == nullptr) {
      free_before[block->ptr + block->size] = block;
    }
    if (block->expandable != nullptr && block->prev == nullptr) {
      free_behind[block->ptr] = block;
    }
  });
  ExpandableSegment* place = nullptr;
  size_t first = 0;
  size_t count = 0;
  const auto free_bytes = [](const Ends& ends, const ExpandableSegment& segment, size_t at) -> size_t {
    const auto found = ends.find(segment.address(at));
    // The addresses of another segment may begin where these end.
    return found != ends.end() && found->second->expandable == &segment ? found->second->size : 0;
  };
  const auto consider = [&](ExpandableSegment& segment, size_t gap, size_t pages) {
    const size_t left = free_bytes(free_before, segment, gap);
    const size_t right = free_bytes(free_behind, segment, gap + pages);
    size_t needed = std::max<size_t>(1, (size - std::min(size, left) + page - 1) / page);
    if (needed > pages && left + pages * page + right >= size) {
      needed = pages;
    }
    if (needed <= pages && (place == nullptr || needed < count)) {
      place = &segment;
      first = gap;
      count = needed;
    }
  };
  for (const auto& segment : segments_) {
    if (&segment->home() == &home && segment->page_size() == page) {
      segment->for_each_gap([&](size_t gap, size_t pages) { consider(*segment, gap, pages); });
    }
  }
  if (place == nullptr) {
    // More than the memory of the device: gaps of the wrong size in the middle must not keep the segment from growing at
    // its end.
    DriverOutcome outcome;
    auto segment = ExpandableSegment::reserve(cache_.device, home, page, total + total / 8 + page, &outcome);
    if (outcome.error == MUSA_ERROR_OUT_OF_MEMORY) {
      return std::nullopt;
    }
    if (segment == nullptr) {
      fail(outcome);
    }
    place = segment.get();
    first = 0;
    count = round_up(size, page) / page;
    segments_.push_back(std::move(segment));
  }
  const size_t bytes = count * page;
  Block* block = cache_.blocks.take();
  DriverOutcome outcome{MUSA_ERROR_OUT_OF_MEMORY, ""};
  if (!cache_.limit.forbids(cache_.stats.reserved_bytes() + bytes)) {
    outcome = place->map(first, count, peers_);
  }
  if (!outcome.ok()) {
    cache_.blocks.give(block);
    drop_if_unused(place); // only the first failure is reported
    if (outcome.error == MUSA_ERROR_OUT_OF_MEMORY) {
      return nullptr;
    }
    fail(outcome);
  }
  block->ptr = place->address(first);
  block->size = bytes;
  block->home = &home;
  block->expandable = place;
  return link_pages(block);
}

void ExpandableSegments::allow_peer(DeviceIndex peer) {
  for (const auto& segment : segments_) {
    const DriverOutcome outcome = segment->allow_peer(peer);
    if (!outcome.ok()) {
      fail(outcome);
    }
  }
  peers_.push_back(peer);
}

Block* ExpandableSegments::block_before(const ExpandableSegment& segment, size_t page) {
  const size_t first = segment.stretch_before(page);
  if (first == page) {
    return nullptr;
  }
  char* const end = segment.address(page);
  Block* block = nullptr;
  if (segment.home().pool.is_small) {
    // Steps down to the start of a block: blocks of the small pool are short, but a stretch has thousands of them.
    char* const lowest = segment.address(page - 1);
    for (char* start = end - kMinBlockSize; block == nullptr && start >= lowest; start -= kMinBlockSize) {
      block = cache_.blocks.find(start);
    }
  }
  if (block == nullptr) {
    block = cache_.blocks.find(segment.address(first));
  }
  while (block->ptr + block->size != end) {
    block = block->next;
  }
  return block;
}

Block* ExpandableSegments::link_pages(Block* block) {
  const ExpandableSegment& segment = *block->expandable;
  Block* before = block_before(segment, segment.pages_of(*block).first);
  Block* behind = cache_.blocks.find(block->ptr + block->size);
  behind = behind != nullptr && behind->expandable == &segment ? behind : nullptr;
  for (const Block* neighbour : {before, behind}) {
    cache_.count_split(neighbour, -1);
  }
  block->prev = before;
  block->next = behind;
  if (before != nullptr) {
    before->next = block;
  }
  if (behind != nullptr) {
    behind->prev = block;
  }
  if (before == nullptr) {
    cache_.blocks.enter(block); // the first of its stretch
  }
  cache_.count_reserved(*block, 1 - (before != nullptr ? 1 : 0) - (behind != nullptr ? 1 : 0));
  cache_.trace.segment_came(
      TraceEntry::SEGMENT_MAP, block->ptr, block->size, block->home->stream, block->home->pool.id);
  return cache_.blocks.merge(block);
}

Block* ExpandableSegments::detach(Block* block) {
  ExpandableSegment& segment = *block->expandable;
  const auto [first, count] = segment.pages_of(*block);
  block->home->free.remove(block);
  cache_.count_split(block, -1);
  Block* pages = block;
  if (segment.address(first) != block->ptr) {
    pages = cache_.blocks.cut(block, static_cast<size_t>(segment.address(first) - block->ptr));
    block->home->free.insert(block);
    cache_.count_split(block, 1);
  }
  if (pages->size != count * segment.page_size()) {
    Block* rest = cache_.blocks.cut(pages, count * segment.page_size());
    rest->home->free.insert(rest);
    cache_.count_split(rest, 1);
  }
  pages->pending_events = 1;
  segment.mark_leaving(first, count);
  return pages;
}

void ExpandableSegments::restore(Block* block) {
  const auto [first, count] = block->expandable->pages_of(*block);
  block->expandable->mark_mapped(first, count);
  block->pending_events = 0;
  for (const Block* neighbour : {block->prev, block->next}) {
    cache_.count_split(neighbour, -1);
  }
  block = cache_.blocks.merge(block);
  block->home->free.insert(block);
  cache_.count_split(block, 1);
}

musaError_t ExpandableSegments::finish(Block* block) {
  ExpandableSegment* segment = block->expandable;
  const auto [first, count] = segment->pages_of(*block);
  Block* before = block->prev;
  Block* behind = block->next;
  for (const Block* neighbour : {before, behind}) {
    cache_.count_split(neighbour, -1);
  }
  if (before != nullptr) {
    before->next = nullptr;
  }
  if (behind != nullptr) {
    behind->prev = nullptr;
    cache_.blocks.enter(behind); // the first of its stretch now
  }
  for (const Block* neighbour : {before, behind}) {
    cache_.count_split(neighbour, 1);
  }
  cache_.count_released(*block, (before != nullptr ? 1 : 0) + (behind != nullptr ? 1 : 0) - 1);
  segment->mark_unmapped(first, count);
  cache_.blocks.erase(block);
  cache_.blocks.give(block);
  return static_cast<musaError_t>(drop_if_unused(segment).error);
}

DriverOutcome ExpandableSegments::drop_if_unused(ExpandableSegment* segment) {
  if (!segment->unused()) {
    return {};
  }
  const DriverOutcome outcome = segment->free_addresses();
  std::erase_if(segments_, [segment](const auto& candidate) { return candidate.get() == segment; });
  return outcome;
}

bool ExpandableSegments::has_addresses_of(const MemoryPool& pool) const {
  return std::any_of(segments_.begin(), segments_.end(), [&pool](const auto& segment) {
    return &segment->home().pool.owner == &pool;
  });
}

} // namespace c10::musa::MUSACachingAllocator
