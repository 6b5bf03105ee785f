// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/allocator/MUSAAllocatorMutex.h>
#include <c10/musa/allocator/MUSACacheState.h>
#include <c10/musa/allocator/MUSAExpandableSegments.h>

#include <vector>

namespace c10::musa::MUSACachingAllocator {

// Reserves segments from the device and releases them: musaMalloc and musaFree, the allocator of a private pool, or pages
// of expandable segments.
//
// Guarded by the mutex of the allocator, which functions with a Lock take locked and return locked. They unlock it for
// calls of the SDK that may wait or run queued work, and for a pool's own allocator. Functions that add a segment need the
// device to be the current one; those that release make it current.
class Segments {
 public:
  using Lock = AllocatorLock;

  explicit Segments(CacheState& cache) : cache_(cache), pages_(cache) {}

  // Bytes of the segment that add() reserves for a block of `size` bytes.
  size_t size_for(const MemoryPool& pool, size_t size);
  // Returns a free block of at least `size` bytes, in no bin; nullptr if the device, or the limit, has no room.
  Block* add(StreamPool& home, size_t size, Lock& lock);
  void allow_peer(DeviceIndex peer) { pages_.allow_peer(peer); }

  // The functions below release segments that are free as a whole, and free pages of expandable segments, except those of
  // private pools that have a holder. If their streams cannot be synchronized, the segments return to the cache; if freeing
  // one fails, that one is lost and those after it return. Then the failure is raised. During a capture nothing is
  // released; a release that has begun delays no capture of another thread.
  void release_all(Lock& lock);
  void release_pool(MempoolId_t id, Lock& lock);
  // Releases as little as makes room: the smallest segment that is large enough, otherwise the largest ones until their sum
  // is. These segments belong to other streams or are too small, so the cache itself could not serve the request.
  void release_to_fit(size_t size, Lock& lock);
  // If `size` more bytes would exceed the configured share of the limit, releases large segments, those idle longest first.
  // Segments idle for less than the average are kept, since they are likely to be reused soon.
  void collect_garbage(size_t size, Lock& lock);

  // Destroys the private pools that have neither a holder nor a segment.
  void drop_unused_pools(Lock& lock);

 private:
  static void* from_source(StreamPool& home, size_t size, Lock& lock);
  template <typename Select>
  std::vector<Block*> detach_if(Select select);
  void reattach(Block* block);
  // Frees detached segments.
  void release(std::vector<Block*> segments, Lock& lock);
  // Not under the mutex; free_segment() under a WaitPermit.
  musaError_t finish_work(const std::vector<Block*>& segments, const char** call) const;
  static musaError_t free_segment(const Block& block, const char** call);
  static void give_to_source(const Block& block);

  CacheState& cache_;
  ExpandableSegments pages_;
};

} // namespace c10::musa::MUSACachingAllocator
