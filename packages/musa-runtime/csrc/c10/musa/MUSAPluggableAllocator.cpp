// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSAPluggableAllocator.h>

#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAFunctions.h>
#include <c10/musa/MUSAGraphsC10Utils.h>
#include <c10/musa/MUSAGuard.h>

#include <algorithm>

namespace c10::musa::MUSACachingAllocator {
namespace {

using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;
using c10::CachingDeviceAllocator::DeviceStats;

constexpr auto kAll = static_cast<size_t>(StatType::AGGREGATE);

// No block is split, cached or rounded, so that several figures are equal.
template <typename Visit>
void for_each_figure(DeviceStats& stats, Visit visit) {
  for (StatArray* count : {&stats.allocation, &stats.segment, &stats.active}) {
    visit((*count)[kAll], false);
  }
  for (StatArray* bytes :
       {&stats.allocated_bytes, &stats.reserved_bytes, &stats.active_bytes, &stats.requested_bytes}) {
    visit((*bytes)[kAll], true);
  }
}

// Runs in destructors, on any thread: must not throw.
void delete_program_allocation(void* ptr) noexcept {
  try {
    get()->raw_delete(ptr);
  } catch (const std::exception& error) {
    TORCH_WARN("Device memory at ", ptr, " could not be freed: ", error.what());
  }
}

} // namespace

MUSAPluggableAllocator::MUSAPluggableAllocator(AllocFn alloc, FreeFn free) : alloc_(alloc), free_(free) {
  TORCH_CHECK_VALUE(alloc != nullptr && free != nullptr, "An allocator needs a function to allocate and one to free.");
}

void* MUSAPluggableAllocator::raw_alloc(size_t nbytes) {
  return raw_alloc_with_stream(nbytes, getCurrentMUSAStream(current_device()).stream());
}

void* MUSAPluggableAllocator::raw_alloc_with_stream(size_t nbytes, musaStream_t stream) {
  if (nbytes == 0) {
    return nullptr;
  }
  const DeviceIndex device = current_device();
  const MUSAStreamCaptureModeGuard relaxed;
  void* ptr = alloc_(static_cast<ssize_t>(nbytes), device, stream);
  if (ptr == nullptr) {
    return nullptr;
  }
  const std::lock_guard<std::mutex> guard(mutex_);
  live_[ptr] = {nbytes, device, stream, {}};
  for_each_figure(stats_[device], [nbytes](auto& figure, bool bytes) { figure.increase(bytes ? nbytes : 1); });
  ++stats_[device].num_device_alloc;
  return ptr;
}

void MUSAPluggableAllocator::raw_delete(void* ptr) {
  if (ptr == nullptr) {
    return;
  }
  Allocation allocation;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = live_.find(ptr);
    TORCH_CHECK(
        found != live_.end(), "Cannot free ", ptr, ": it is not an allocation of this pluggable allocator.\n",
        "Likely causes: the pointer was freed before, or came from another allocator.");
    allocation = std::move(found->second);
    live_.erase(found);
    DeviceStats& stats = stats_[allocation.device];
    for_each_figure(stats, [&](auto& figure, bool bytes) { figure.decrease(bytes ? allocation.size : 1); });
    ++stats.num_device_free;
  }
  const MUSAGuard guard(allocation.device);
  const MUSAStreamCaptureModeGuard relaxed;
  for (const MUSAStream& use : allocation.uses) {
    C10_MUSA_CHECK_WARN(musaStreamSynchronize(use.stream()));
  }
  free_(ptr, static_cast<ssize_t>(allocation.size), allocation.device, allocation.stream);
}

DataPtr MUSAPluggableAllocator::allocate(size_t nbytes) {
  const DeviceIndex device = current_device();
  void* ptr = raw_alloc(nbytes);
  if (ptr == nullptr && nbytes != 0) {
    const auto stats = getDeviceStats(device);
    TORCH_CHECK_WITH(
        OutOfMemoryError, false, "MUSA out of memory. The pluggable allocator returned no memory for ", nbytes,
        " bytes on musa:", static_cast<int>(device), "; ", stats.allocated_bytes[kAll].current,
        " bytes are allocated.\nLikely causes: the device is full; the allocation function failed.");
  }
  return {ptr, ptr, &delete_program_allocation, Device(DeviceType::PrivateUse1, device)};
}

DeleterFnPtr MUSAPluggableAllocator::raw_deleter() const { return &delete_program_allocation; }

bool MUSAPluggableAllocator::owns(const void* ptr) {
  const std::lock_guard<std::mutex> guard(mutex_);
  return live_.count(ptr) != 0;
}

std::string MUSAPluggableAllocator::name() { return "pluggable"; }

void MUSAPluggableAllocator::emptyCache(MempoolId_t /*id*/) {}

void MUSAPluggableAllocator::recordStream(const DataPtr& data, Stream stream) {
  const MUSAStream use(stream);
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = live_.find(data.get_context());
  if (data.get_deleter() != &delete_program_allocation || found == live_.end()) {
    return; // foreign memory has its own owner, which tracks its streams
  }
  auto& uses = found->second.uses;
  if (std::find(uses.begin(), uses.end(), use) == uses.end()) {
    uses.push_back(use);
  }
}

DeviceStats MUSAPluggableAllocator::getDeviceStats(DeviceIndex device) {
  const std::lock_guard<std::mutex> guard(mutex_);
  return stats_[resolve_device_index(device)];
}

void MUSAPluggableAllocator::resetAccumulatedStats(DeviceIndex device) {
  const std::lock_guard<std::mutex> guard(mutex_);
  for_each_figure(stats_[resolve_device_index(device)], [](auto& figure, bool) { figure.reset_accumulated(); });
}

void MUSAPluggableAllocator::resetPeakStats(DeviceIndex device) {
  const std::lock_guard<std::mutex> guard(mutex_);
  for_each_figure(stats_[resolve_device_index(device)], [](auto& figure, bool) { figure.reset_peak(); });
}

} // namespace c10::musa::MUSACachingAllocator
