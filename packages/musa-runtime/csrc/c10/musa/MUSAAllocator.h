// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/musa/MUSAMacros.h>
#include <musa_runtime.h>

#include <atomic>
#include <string>
#include <utility>

namespace c10::musa::MUSACachingAllocator {

// An allocator of musa tensors, or of the segments of a private pool. Called with no lock of the caching allocator held,
// from any thread; the current device is that of the memory.
class C10_MUSA_API MUSAAllocator : public c10::DeviceAllocator {
 public:
  // Allocates on the current device, on its current stream or the given one. Returns null if there is no memory.
  virtual void* raw_alloc(size_t nbytes) = 0;
  virtual void* raw_alloc_with_stream(size_t nbytes, musaStream_t stream) = 0;
  virtual void raw_delete(void* ptr) = 0;
  // Whether ptr is the start of a live allocation of this allocator.
  virtual bool owns(const void* ptr) = 0;
  virtual std::string name() = 0;

  void copy_data(void* dest, const void* src, std::size_t count) const override;
  bool initialized() override;
  std::pair<size_t, size_t> getMemoryInfo(DeviceIndex device) override;
};

// False if PYTORCH_NO_MUSA_MEMORY_CACHING=1: each allocation is then one of the SDK's and is freed at once, so that memory
// checkers see every out-of-bounds access.
C10_MUSA_API extern std::atomic<bool> caching_enabled;
inline bool isEnabled() { return caching_enabled.load(std::memory_order_relaxed); }
// Turns caching on or off for later allocations and frees.
C10_MUSA_API void enable(bool value);

} // namespace c10::musa::MUSACachingAllocator
