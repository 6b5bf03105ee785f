// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSACachingAllocator.h>

namespace c10::musa {

// A private pool of the caching allocator that lives as long as this object and the tensors in it. What is allocated
// between beginAllocateToPool and endAllocateToPool comes from it.
class C10_MUSA_API MemPool {
 public:
  // On the current device. The pool's segments come from the allocator, or from musaMalloc where there is none.
  // use_on_oom: its free blocks serve others before they run out of memory. no_split: each segment is one block.
  explicit MemPool(
      std::shared_ptr<MUSACachingAllocator::MUSAAllocator> allocator = nullptr,
      bool is_user_created = true,
      bool use_on_oom = false,
      bool no_split = false);
  // Gives what is free back to the device; the rest follows, as cached memory, when its tensors die.
  ~MemPool();
  MemPool(const MemPool&) = delete;
  MemPool& operator=(const MemPool&) = delete;

  MempoolId_t id() const {
    return id_;
  }
  // Holders: this object, regions that fill it at present, and graphs.
  int use_count() const;
  DeviceIndex device() const {
    return device_;
  }

  // An id that no pool has: {0, n} for a user's pool, {n, 0} for one that a graph makes for itself.
  static MempoolId_t graph_pool_handle(bool is_user_created = true);

 private:
  const MempoolId_t id_;
  const DeviceIndex device_;
};

// From now on what this thread allocates on the device comes from the pool, until endAllocateToPool.
C10_MUSA_API void beginAllocateCurrentThreadToPool(DeviceIndex device, MempoolId_t id);
// The same for what is allocated on the current stream, by any thread.
C10_MUSA_API void beginAllocateCurrentStreamToPool(DeviceIndex device, MempoolId_t id);

} // namespace c10::musa
