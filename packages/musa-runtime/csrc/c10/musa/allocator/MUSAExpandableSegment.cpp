// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/allocator/MUSAExpandableSegment.h>

#include <algorithm>

namespace c10::musa::MUSACachingAllocator {
namespace {

// A handle that the driver failed to release.
constexpr MUmemGenericAllocationHandle kLost = ~MUmemGenericAllocationHandle{0};

MUdeviceptr driver_address(const char* address) {
  return static_cast<MUdeviceptr>(reinterpret_cast<uintptr_t>(address));
}

} // namespace

MUmemAllocationProp device_memory(DeviceIndex device) {
  MUmemAllocationProp prop{};
  prop.type = MU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = MU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = device;
  return prop;
}

ExpandableSegment::ExpandableSegment(DeviceIndex device, StreamPool& home, char* base, size_t page, size_t count)
    : device_(device),
      home_(home),
      base_(base),
      page_(page),
      count_(count),
      pages_(count, Page::Empty),
      handles_(count, 0) {}

std::unique_ptr<ExpandableSegment> ExpandableSegment::reserve(
    DeviceIndex device, StreamPool& home, size_t page, size_t bytes, DriverOutcome* outcome) {
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

DriverOutcome ExpandableSegment::set_access(size_t first, size_t count, const std::vector<DeviceIndex>& devices) {
  std::vector<MUmemAccessDesc> access(devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    access[i].location.type = MU_MEM_LOCATION_TYPE_DEVICE;
    access[i].location.id = devices[i];
    access[i].flags = MU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  return {
      muMemSetAccess(driver_address(address(first)), count * page_, access.data(), access.size()),
      "muMemSetAccess(address, size, access, count)"};
}

DriverOutcome ExpandableSegment::allow_peer(DeviceIndex peer) {
  DriverOutcome outcome;
  for_each_stretch(Page::Mapped, [&](size_t first, size_t count) {
    if (outcome.ok()) {
      outcome = set_access(first, count, {peer});
    }
  });
  return outcome;
}

DriverOutcome ExpandableSegment::map(size_t first, size_t count, const std::vector<DeviceIndex>& peers) {
  const MUmemAllocationProp prop = device_memory(device_);
  size_t created = 0;
  size_t mapped = 0;
  DriverOutcome outcome;
  // All memory is created first: running out of it, the usual failure, is then undone without touching the addresses.
  for (; created < count && outcome.ok(); created += outcome.ok()) {
    outcome = {muMemCreate(&handles_[first + created], page_, &prop, 0), "muMemCreate(&handle, page, &prop, 0)"};
  }
  for (; outcome.ok() && mapped < count; mapped += outcome.ok()) {
    outcome = {
        muMemMap(driver_address(address(first + mapped)), page_, 0, handles_[first + mapped], 0),
        "muMemMap(address, page, 0, handle, 0)"};
  }
  if (outcome.ok()) {
    std::vector<DeviceIndex> devices{device_};
    devices.insert(devices.end(), peers.begin(), peers.end());
    outcome = set_access(first, count, devices);
  }
  if (outcome.ok()) {
    set(first, count, Page::Mapped);
    return outcome;
  }
  for (size_t i = 0; i < created; ++i) {
    // Only the first failure is reported; a second one cannot be handled.
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
    // Also after a failure: the memory is then released together with the mapping.
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

void ExpandableSegment::mark_leaving(size_t first, size_t count) { set(first, count, Page::Leaving); }

void ExpandableSegment::mark_mapped(size_t first, size_t count) { set(first, count, Page::Mapped); }

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

} // namespace c10::musa::MUSACachingAllocator
