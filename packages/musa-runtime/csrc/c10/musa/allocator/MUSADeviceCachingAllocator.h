// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/allocator/MUSAAllocatorMutex.h>
#include <c10/musa/allocator/MUSACacheState.h>
#include <c10/musa/MUSACaptures.h>
#include <c10/musa/allocator/MUSAPendingFrees.h>
#include <c10/musa/allocator/MUSASegments.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace c10::musa::MUSACachingAllocator {

// The cache of one device: finds and splits blocks, and connects its parts. CacheState has their shared state, Segments
// reserves and releases memory of the device, PendingFrees holds blocks that other streams still use.
//
// Locking
//   mutex_            guards every field below it, and every Block, StreamPool and BlockPool reachable from them.
//   lock order        GIL, then mutex_. Nothing here takes the GIL.
//   not under mutex_  SDK calls that may wait or run queued work (free, unmap, event record/query, synchronise): queued
//                     work may itself free memory, on this or on a worker thread. Such code takes what it needs out of the
//                     structures, unlocks, calls, locks again and puts back the failed ones. Nor a pool's own allocator.
//   before mutex_     a TraceScope at the entry gathers stacks, which takes the GIL.
//   under mutex_      musaMalloc and its replacement in an expandable segment: reserving and freeing addresses, creating
//                     and mapping memory, which no queued work can use yet; and musaSetDevice around it. Also the
//                     filters of pools that are being filled: they query a stream's capture.
//
// Current device: code that calls the SDK for this device (grow, release) sets the current device for that time. Nothing
// else depends on the current device.
//
// While a stream of the process captures (see markCaptureBegin) no event is recorded or queried and no release of
// segments begins: the SDK forbids it, and the capture of another thread would be invalidated. Memory that waits for other
// streams waits until then. A release that waits for its streams or frees delays no capture.
class DeviceCachingAllocator {
 public:
  explicit DeviceCachingAllocator(DeviceIndex device);

  // nbytes > 0; any device may be current. Makes no SDK call if a cached block serves, unless freed memory waits for other
  // streams. Raises c10::OutOfMemoryError.
  void* malloc(size_t nbytes, musaStream_t stream);
  // Returns false if ptr is not of this device. Raises for a pointer that is already freed.
  bool free(void* ptr);
  bool record_stream(void* ptr, MUSAStream stream);

  bool owns(const void* ptr);
  // Returns the segment around an allocation; null if ptr is not of this device.
  void* base_allocation(void* ptr, size_t* size);

  void empty_cache(MempoolId_t id);
  // Gives a device access to the memory of expandable segments. The SDK gives access to all other memory by itself.
  void allow_peer(DeviceIndex peer);

  // Private pools. Raise for the default pool and for a pool that does not exist.
  void begin_filling(MempoolId_t id, std::function<bool(musaStream_t)> filter);
  void end_filling(MempoolId_t id);
  void hold_pool(MempoolId_t id, std::shared_ptr<MUSAAllocator> source);
  void release_pool(MempoolId_t id);
  int pool_use_count(MempoolId_t id);
  void set_use_on_oom(MempoolId_t id, bool value);
  void set_no_split(MempoolId_t id);
  // Frees the blocks whose free was deferred during a capture.
  void free_deferred();

  DeviceStats stats();
  void reset_peak_stats();
  void reset_accumulated_stats();
  // Whether it never reserved memory of the device.
  bool untouched();
  void set_memory_fraction(double fraction);
  double memory_fraction();
  // (bytes in free blocks, largest free block)
  std::pair<size_t, size_t> cache_info();

  void record_history(const HistoryOptions& options);
  bool recording_history();
  void attach_trace_tracker(AllocatorTraceTracker tracker);
  // The stack that made a live allocation; null if unknown.
  std::shared_ptr<GatheredContext> context_of(const void* ptr);
  // The segments of one pool, or of all with {0, 0}; with include_trace, also the entries of the trace.
  std::pair<std::vector<SegmentInfo>, std::vector<TraceEntry>> snapshot(MempoolId_t id, bool include_trace);

 private:
  using Lock = AllocatorLock;

  Block* find_cached(StreamPool& home, size_t size);
  Block* find_on_oom(const StreamPool& home, size_t size);
  Block* grow(StreamPool& home, size_t size, size_t nbytes, Lock& lock);
  // `split_bytes`: the size of the block if the statistics still count it as split, otherwise 0.
  void hand_out(Block* block, size_t size, size_t nbytes, size_t split_bytes);
  void return_to_pool(Block* block);
  [[noreturn]] void out_of_memory(const StreamPool& home, size_t nbytes, size_t segment, Lock& lock);
  void report(void* ptr, int64_t size, size_t allocated, size_t reserved) const;

  AllocatorMutex mutex_;
  CacheState cache_;
  Segments segments_;
  PendingFrees pending_;
};

} // namespace c10::musa::MUSACachingAllocator
