// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSACachingAllocator.h>

namespace c10::musa {

// A private pool of the caching allocator that lives as long as this object and the tensors in it. Memory allocated between
// beginAllocateToPool and endAllocateToPool comes from it.
class C10_MUSA_API MemPool {
 public:
  // Creates a pool on the current device. Its segments come from the allocator, or from musaMalloc without one. use_on_oom:
  // its free blocks serve other requests before these run out of memory. no_split: each segment is one block.
  explicit MemPool(
      std::shared_ptr<MUSACachingAllocator::MUSAAllocator> allocator = nullptr, bool is_user_created = true,
      bool use_on_oom = false, bool no_split = false);
  // Releases the free memory to the device; the rest becomes cached memory when its tensors are freed.
  ~MemPool();
  MemPool(const MemPool&) = delete;
  MemPool& operator=(const MemPool&) = delete;

  MempoolId_t id() const { return id_; }
  // The number of holders: this object, regions that currently fill it, and graphs.
  int use_count() const;
  DeviceIndex device() const { return device_; }

  // Returns an id that no pool has: {0, n} for a user's pool, {n, 0} for the pool of a graph.
  static MempoolId_t graph_pool_handle(bool is_user_created = true);

 private:
  const MempoolId_t id_;
  const DeviceIndex device_;
};

// From now on, this thread's allocations on the device come from the pool, until endAllocateToPool.
C10_MUSA_API void beginAllocateCurrentThreadToPool(DeviceIndex device, MempoolId_t id);
// The same for allocations on the current stream, by any thread.
C10_MUSA_API void beginAllocateCurrentStreamToPool(DeviceIndex device, MempoolId_t id);

} // namespace c10::musa
