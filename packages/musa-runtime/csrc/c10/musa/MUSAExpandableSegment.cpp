// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSAExpandableSegment.h>

#include <c10/musa/MUSAAllocatorEvents.h>
#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSADeviceCachingAllocator.h>
#include <c10/musa/MUSAException.h>

#include <algorithm>

namespace c10::musa::MUSACachingAllocator {
namespace {

using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;

constexpr size_t kSmallPage = size_t{2} << 20;
constexpr size_t kLargePage = size_t{20} << 20;
// A handle that the driver would not let go.
constexpr MUmemGenericAllocationHandle kLost = ~MUmemGenericAllocationHandle{0};

MUmemAllocationProp device_memory(DeviceIndex device) {
  MUmemAllocationProp prop{};
  prop.type = MU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = MU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = device;
  return prop;
}

MUdeviceptr driver_address(const char* address) {
  return static_cast<MUdeviceptr>(reinterpret_cast<uintptr_t>(address));
}

[[noreturn]] void fail(const DriverOutcome& outcome) {
  // The driver's codes are the runtime's.
  throw_musa_error(static_cast<musaError_t>(outcome.error), outcome.call, __func__, __FILE__, __LINE__);
}

size_t round_up(size_t size, size_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

} // namespace

// ---- one segment

ExpandableSegment::ExpandableSegment(DeviceIndex device, StreamPool& home, char* base, size_t page, size_t count)
    : device_(device),
      home_(home),
      base_(base),
      page_(page),
      count_(count),
      pages_(count, Page::Empty),
      handles_(count, 0) {}

std::unique_ptr<ExpandableSegment> ExpandableSegment::reserve(
    DeviceIndex device,
    StreamPool& home,
    size_t page,
    size_t bytes,
    DriverOutcome* outcome) {
  const size_t size = round_up(bytes, page);
  MUdeviceptr base = 0;
  *outcome = {muMemAddressReserve(&base, size, 0, 0, 0), "muMemAddressReserve(&base, size, 0, 0, 0)"};
  if (!outcome->ok()) {
    return nullptr;
  }
  return std::unique_ptr<ExpandableSegment>(
      new ExpandableSegment(device, home, reinterpret_cast<char*>(static_cast<uintptr_t>(base)), page, size / page));
}

DriverOutcome ExpandableSegment::free_addresses() {
  return {muMemAddressFree(driver_address(base_), count_ * page_), "muMemAddressFree(base, size)"};
}

DriverOutcome ExpandableSegment::map(size_t first, size_t count) {
  const MUmemAllocationProp prop = device_memory(device_);
  size_t created = 0;
  size_t mapped = 0;
  DriverOutcome outcome;
  // All memory first: running out of it, the usual failure, is then undone without touching the addresses.
  for (; created < count && outcome.ok(); created += outcome.ok()) {
    outcome = {muMemCreate(&handles_[first + created], page_, &prop, 0), "muMemCreate(&handle, page, &prop, 0)"};
  }
  for (; outcome.ok() && mapped < count; mapped += outcome.ok()) {
    outcome = {
        muMemMap(driver_address(address(first + mapped)), page_, 0, handles_[first + mapped], 0),
        "muMemMap(address, page, 0, handle, 0)"};
  }
  if (outcome.ok()) {
    MUmemAccessDesc access{};
    access.location = prop.location;
    access.flags = MU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    outcome = {
        muMemSetAccess(driver_address(address(first)), count * page_, &access, 1),
        "muMemSetAccess(address, size, &access, 1)"};
  }
  if (outcome.ok()) {
    set(first, count, Page::Mapped);
    return outcome;
  }
  for (size_t i = 0; i < created; ++i) {
    // The first failure is the one to tell; and nothing can be done about a second.
    const bool free = i >= mapped || muMemUnmap(driver_address(address(first + i)), page_) == MUSA_SUCCESS;
    (void)muMemRelease(handles_[first + i]);
    handles_[first + i] = 0;
    if (!free) {
      set(first + i, 1, Page::Lost);
    }
  }
  return outcome;
}

DriverOutcome ExpandableSegment::unmap(size_t first, size_t count) {
  DriverOutcome outcome;
  for (size_t i = first; i < first + count; ++i) {
    const DriverOutcome unmapped{muMemUnmap(driver_address(address(i)), page_), "muMemUnmap(address, page)"};
    // Also after a failure: the memory then goes with the mapping, whenever that goes.
    const DriverOutcome released{muMemRelease(handles_[i]), "muMemRelease(handle)"};
    handles_[i] = unmapped.ok() ? 0 : kLost;
    for (const DriverOutcome& step : {unmapped, released}) {
      if (outcome.ok() && !step.ok()) {
        outcome = step;
      }
    }
  }
  return outcome;
}

void ExpandableSegment::mark_leaving(size_t first, size_t count) {
  set(first, count, Page::Leaving);
}

void ExpandableSegment::mark_mapped(size_t first, size_t count) {
  set(first, count, Page::Mapped);
}

void ExpandableSegment::mark_unmapped(size_t first, size_t count) {
  for (size_t i = first; i < first + count; ++i) {
    set(i, 1, handles_[i] == kLost ? Page::Lost : Page::Empty);
  }
}

void ExpandableSegment::set(size_t first, size_t count, Page state) {
  std::fill_n(pages_.begin() + static_cast<ptrdiff_t>(first), count, state);
  top_ = std::max(top_, first + count);
  while (top_ > 0 && pages_[top_ - 1] == Page::Empty) {
    --top_;
  }
}

// ---- the allocator's part. All of it under the mutex.

// Whether new memory goes into expandable segments: when the setting asks for it and the device can.
bool DeviceCachingAllocator::expands() {
  if (!Config::use_expandable_segments() || !isEnabled()) {
    return false;
  }
  if (page_unit_.has_value()) {
    return *page_unit_ != 0;
  }
  int supported = 0;
  DriverOutcome outcome{
      muDeviceGetAttribute(&supported, MU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED, device_),
      "muDeviceGetAttribute(&supported, MU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED, device)"};
  size_t unit = 0;
  if (outcome.ok() && supported != 0) {
    const MUmemAllocationProp prop = device_memory(device_);
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
        "expandable_segments:True is set, but musa:", static_cast<int>(device_),
        " has no virtual memory management, so memory comes in segments of fixed size.\n",
        "Likely causes: the device does not offer it; the driver is older than 4.0.\n",
        "Cure: update the driver, or take expandable_segments out of PYTORCH_ALLOC_CONF.");
  }
  return unit != 0;
}

// Maps memory so that a free block of at least `size` bytes comes about, where that takes the fewest new pages, and
// returns it, in no bin. Null when the device, or the limit, has no room; nothing when there are no addresses left.
std::optional<Block*> DeviceCachingAllocator::expand(StreamPool& home, size_t size) {
  const size_t most = limit();
  const size_t page = round_up(home.pool.is_small ? kSmallPage : kLargePage, *page_unit_);
  if (size > total_memory_) {
    return nullptr;
  }
  // Free blocks at the ends of mapped stretches count towards the size.
  using Ends = ska::flat_hash_map<const char*, const Block*>;
  Ends free_before; // by the address behind the block
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
    // Another segment's addresses may begin where these end.
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
  for (const auto& segment : expandable_) {
    if (&segment->home() == &home && segment->page_size() == page) {
      segment->for_each_gap([&](size_t gap, size_t pages) { consider(*segment, gap, pages); });
    }
  }
  if (place == nullptr) {
    // More than the memory: holes of the wrong size in the middle must not keep it from growing at the end.
    DriverOutcome outcome;
    auto segment = ExpandableSegment::reserve(device_, home, page, total_memory_ + total_memory_ / 8 + page, &outcome);
    if (outcome.error == MUSA_ERROR_OUT_OF_MEMORY) {
      return std::nullopt;
    }
    if (segment == nullptr) {
      fail(outcome);
    }
    place = segment.get();
    first = 0;
    count = round_up(size, page) / page;
    expandable_.push_back(std::move(segment));
  }
  const size_t bytes = count * page;
  Block* block = store_.take();
  DriverOutcome outcome{MUSA_ERROR_OUT_OF_MEMORY, ""};
  if (fraction_ >= 1.0 || stats_.reserved_bytes() + bytes <= most) {
    outcome = place->map(first, count);
  }
  if (!outcome.ok()) {
    store_.give(block);
    drop_if_unused(place); // of two failures the first one is told
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

// The block that ends where a page begins; null where nothing is mapped before that.
Block* DeviceCachingAllocator::block_before(const ExpandableSegment& segment, size_t page) {
  const size_t first = segment.stretch_before(page);
  if (first == page) {
    return nullptr;
  }
  char* const end = segment.address(page);
  Block* block = nullptr;
  if (segment.home().pool.is_small) {
    // Steps down to where a block begins: blocks of the small pool are short, but a stretch has thousands of them.
    char* const lowest = segment.address(page - 1);
    for (char* start = end - kMinBlockSize; block == nullptr && start >= lowest; start -= kMinBlockSize) {
      const auto found = blocks_.find(start);
      block = found != blocks_.end() ? found->second : nullptr;
    }
  }
  if (block == nullptr) {
    block = blocks_.find(segment.address(first))->second;
  }
  while (block->ptr + block->size != end) {
    block = block->next;
  }
  return block;
}

// Enters the block of freshly mapped pages between its neighbours and joins it with those that are free. Returns the whole.
Block* DeviceCachingAllocator::link_pages(Block* block) {
  const ExpandableSegment& segment = *block->expandable;
  Block* before = block_before(segment, segment.pages_of(*block).first);
  const auto found = blocks_.find(block->ptr + block->size);
  Block* behind = found != blocks_.end() && found->second->expandable == &segment ? found->second : nullptr;
  for (const Block* neighbour : {before, behind}) {
    count_split(neighbour, -1);
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
    register_block(block); // the first of its stretch
  }
  count_reserved(*block, 1 - (before != nullptr ? 1 : 0) - (behind != nullptr ? 1 : 0));
  trace_.segment_came(TraceEntry::SEGMENT_MAP, block->ptr, block->size, block->home->stream, block->home->pool.id);
  return merge(block);
}

// Takes the whole pages out of a free block. Their block stays in the list of its neighbours, so that it can go back
// whatever happens to those meanwhile; it is in no bin, and pending, so that nobody takes or merges it.
Block* DeviceCachingAllocator::detach_pages(Block* block) {
  ExpandableSegment& segment = *block->expandable;
  const auto [first, count] = segment.pages_of(*block);
  block->home->free.remove(block);
  count_split(block, -1);
  Block* pages = block;
  if (segment.address(first) != block->ptr) {
    pages = cut(block, static_cast<size_t>(segment.address(first) - block->ptr));
    block->home->free.insert(block);
    count_split(block, 1);
  }
  if (pages->size != count * segment.page_size()) {
    Block* rest = cut(pages, count * segment.page_size());
    rest->home->free.insert(rest);
    count_split(rest, 1);
  }
  pages->pending_events = 1;
  segment.mark_leaving(first, count);
  return pages;
}

void DeviceCachingAllocator::reattach(Block* block) {
  if (block->expandable != nullptr) {
    restore_pages(block);
    return;
  }
  register_block(block);
  block->home->free.insert(block);
}

// Not under the mutex.
musaError_t DeviceCachingAllocator::free_segment(const Block& block, const char** call) {
  if (block.expandable != nullptr) {
    const auto [first, count] = block.expandable->pages_of(block);
    const DriverOutcome outcome = block.expandable->unmap(first, count);
    *call = outcome.call;
    return static_cast<musaError_t>(outcome.error); // the driver's codes are the runtime's
  }
  if (block.home->pool.owner.source != nullptr) {
    free_to_source(block);
    return musaSuccess;
  }
  *call = "musaFree(segment)";
  return relaxed([&] { return musaFree(block.ptr); });
}

void DeviceCachingAllocator::restore_pages(Block* block) {
  const auto [first, count] = block->expandable->pages_of(*block);
  block->expandable->mark_mapped(first, count);
  block->pending_events = 0;
  for (const Block* neighbour : {block->prev, block->next}) {
    count_split(neighbour, -1);
  }
  block = merge(block);
  block->home->free.insert(block);
  count_split(block, 1);
}

musaError_t DeviceCachingAllocator::finish_pages(Block* block) {
  ExpandableSegment* segment = block->expandable;
  const auto [first, count] = segment->pages_of(*block);
  Block* before = block->prev;
  Block* behind = block->next;
  for (const Block* neighbour : {before, behind}) {
    count_split(neighbour, -1);
  }
  if (before != nullptr) {
    before->next = nullptr;
  }
  if (behind != nullptr) {
    behind->prev = nullptr;
    register_block(behind); // the first of its stretch now
  }
  for (const Block* neighbour : {before, behind}) {
    count_split(neighbour, 1);
  }
  count_released(*block, (before != nullptr ? 1 : 0) + (behind != nullptr ? 1 : 0) - 1);
  segment->mark_unmapped(first, count);
  unregister_block(block);
  store_.give(block);
  return static_cast<musaError_t>(drop_if_unused(segment).error);
}

// Gives the addresses back when nothing is mapped to them any more, nor held by a lost page.
DriverOutcome DeviceCachingAllocator::drop_if_unused(ExpandableSegment* segment) {
  if (!segment->unused()) {
    return {};
  }
  const DriverOutcome outcome = segment->free_addresses();
  std::erase_if(expandable_, [segment](const auto& candidate) { return candidate.get() == segment; });
  return outcome;
}

// A free block that is a part of its segment counts as split.
void DeviceCachingAllocator::count_split(const Block* block, int sign) {
  if (block != nullptr && block->available() && !block->whole_segment()) {
    stats_.on_split_change(block->home->pool.stat_type(), sign, sign * static_cast<int64_t>(block->size));
  }
}

} // namespace c10::musa::MUSACachingAllocator
