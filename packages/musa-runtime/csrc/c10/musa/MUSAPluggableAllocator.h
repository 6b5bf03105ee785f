// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSACachingAllocator.h>

#include <mutex>
#include <unordered_map>
#include <vector>

namespace c10::musa::MUSACachingAllocator {

// An allocator made of two user functions. It caches nothing: each allocation calls one, each free the other.
//
// Locking: mutex_ guards live_ and stats_, is a leaf, and is not held while the user's functions run; they may take the
// GIL, and may allocate.
class C10_MUSA_API MUSAPluggableAllocator final : public MUSAAllocator {
 public:
  // Both are called with the device current. AllocFn returns null if there is no memory.
  using AllocFn = void* (*)(ssize_t size, int device, musaStream_t stream);
  using FreeFn = void (*)(void* ptr, ssize_t size, int device, musaStream_t stream);

  MUSAPluggableAllocator(AllocFn alloc, FreeFn free);

  DataPtr allocate(size_t nbytes) override; // raises c10::OutOfMemoryError
  DeleterFnPtr raw_deleter() const override;
  void* raw_alloc(size_t nbytes) override;
  void* raw_alloc_with_stream(size_t nbytes, musaStream_t stream) override;
  void raw_delete(void* ptr) override;
  bool owns(const void* ptr) override;
  std::string name() override;

  void emptyCache(MempoolId_t id) override;
  // The stream is synchronized before the memory is freed.
  void recordStream(const DataPtr& data, Stream stream) override;
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex device) override;
  void resetAccumulatedStats(DeviceIndex device) override;
  void resetPeakStats(DeviceIndex device) override;

 private:
  struct Allocation {
    size_t size;
    DeviceIndex device;
    musaStream_t stream;
    std::vector<MUSAStream> uses; // by recordStream
  };

  const AllocFn alloc_;
  const FreeFn free_;
  std::mutex mutex_;
  std::unordered_map<const void*, Allocation> live_;
  std::unordered_map<DeviceIndex, c10::CachingDeviceAllocator::DeviceStats> stats_;
};

} // namespace c10::musa::MUSACachingAllocator
