// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAAllocatorStatistics.h>
#include <c10/musa/MUSAAllocatorTrace.h>
#include <c10/musa/MUSABlockPool.h>
#include <c10/musa/MUSACaptures.h>
#include <c10/musa/MUSAExpandableSegment.h>
#include <c10/util/flat_hash_map.h>

#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace c10::musa::MUSACachingAllocator {

// The cache of one device.
//
// Locking
//   mutex_            guards every field below it, and every Block, StreamPool and BlockPool reachable from them.
//   lock order        GIL, then mutex_. Nothing here takes the GIL.
//   not under mutex_  SDK calls that may wait or run queued work (free, unmap, event record/query, synchronise): queued
//                     work may itself free memory, on this or on a worker thread. Such code takes what it needs out of the
//                     structures, unlocks, calls, locks again and puts back what failed. Nor a pool's own allocator.
//   before mutex_     stacks are gathered, by a TraceScope at the entry: that takes the GIL.
//   under mutex_      musaMalloc and what takes its place in an expandable segment: reserving and freeing addresses, creating
//                     and mapping memory, which nothing queued can be using yet; and musaSetDevice around it. And the
//                     filters of pools that are being filled: they query a stream's capture.
//
// The current device: what calls the SDK for this device (grow, release) makes it current for as long. Nothing else depends
// on the current device.
//
// While a stream of the process captures (see markCaptureBegin) no event is recorded or queried and no segment freed: the
// SDK forbids it, and the capture of another thread would be lost. Memory that waits for other streams waits until then.
class DeviceCachingAllocator {
 public:
  explicit DeviceCachingAllocator(DeviceIndex device);

  // nbytes > 0; any device may be the current one. Makes no SDK call where a cached block serves, unless freed memory
  // waits for other streams. Raises c10::OutOfMemoryError.
  void* malloc(size_t nbytes, musaStream_t stream);
  // False when ptr is not of this device. Raises for a pointer that was freed before.
  bool free(void* ptr);
  bool record_stream(void* ptr, MUSAStream stream);

  bool owns(const void* ptr);
  // The segment around an allocation; null when ptr is not of this device.
  void* base_allocation(void* ptr, size_t* size);

  void empty_cache(MempoolId_t id);

  // Private pools, in MUSAPrivatePools.cpp. Raise for the default pool and for a pool that is not there.
  void begin_filling(MempoolId_t id, std::function<bool(musaStream_t)> filter);
  void end_filling(MempoolId_t id);
  void hold_pool(MempoolId_t id, std::shared_ptr<MUSAAllocator> source);
  void release_pool(MempoolId_t id);
  int pool_use_count(MempoolId_t id);
  void set_use_on_oom(MempoolId_t id, bool value);
  void set_no_split(MempoolId_t id);
  // Frees what was freed during a capture and had to wait for its end.
  void free_deferred();

  DeviceStats stats();
  void reset_peak_stats();
  void reset_accumulated_stats();
  // Whether it never took memory of the device.
  bool untouched();
  void set_memory_fraction(double fraction);
  double memory_fraction();
  // (bytes in free blocks, largest free block)
  std::pair<size_t, size_t> cache_info();

  void record_history(const HistoryOptions& options);
  bool recording_history();
  void attach_trace_tracker(AllocatorTraceTracker tracker);
  // Where a live allocation was made; null when unknown.
  std::shared_ptr<GatheredContext> context_of(const void* ptr);
  // The segments of one pool, or of all with {0, 0}, and with include_trace the entries of the trace.
  std::pair<std::vector<SegmentInfo>, std::vector<TraceEntry>> snapshot(MempoolId_t id, bool include_trace);

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct PendingEvent {
    musaEvent_t event;
    Block* block;
  };
  enum class Wait { No, Yes };
  // A pool that the allocations of some streams come from at present.
  struct Filling {
    MemoryPool* pool;
    std::function<bool(musaStream_t)> filter;
  };

  BlockPool& pool_for(size_t size, musaStream_t stream);
  MemoryPool& filled_pool(musaStream_t stream);
  MemoryPool& private_pool(MempoolId_t id);
  MemoryPool& hold_pool(MempoolId_t id, std::shared_ptr<MUSAAllocator> source, Lock& locked);
  Block* find_on_oom(const StreamPool& home, size_t size);
  void* segment_from_source(StreamPool& home, size_t size, Lock& lock);
  static void free_to_source(const Block& block);
  // A segment, or pages of an expandable one, came or went; `segments` is the net change in stretches of mapped pages.
  void count_reserved(const Block& block, int64_t segments);
  void count_released(const Block& block, int64_t segments);
  void drop_unused_pools(Lock& lock);
  Block* find_cached(StreamPool& home, size_t size);
  Block* grow(StreamPool& home, size_t size, size_t nbytes, Lock& lock);
  Block* new_segment(StreamPool& home, size_t size, Lock& lock);
  // `split_bytes`: the size of a block that the statistics still count among the split ones, otherwise 0.
  void hand_out(Block* block, size_t size, size_t nbytes, size_t split_bytes);
  void return_to_pool(Block* block);
  void register_block(Block* block);
  void unregister_block(Block* block);
  Block* cut(Block* block, size_t size);
  void absorb_next(Block* block);
  Block* merge(Block* block);

  void free_after_events(Block* block, Lock& lock);
  void process_events(Wait wait, Lock& lock);

  template <typename Select>
  std::vector<Block*> detach_segments(Select select);
  void detach(Block* block);
  void reattach(Block* block);
  musaError_t free_segment(const Block& block, const char** call);
  void release(std::vector<Block*> segments, Lock& lock);
  void release_to_fit(size_t size, Lock& lock);
  void collect_garbage(size_t size, Lock& lock);
  size_t limit();
  size_t largest_cached() const;
  [[noreturn]] void out_of_memory(const StreamPool& home, size_t nbytes, size_t segment, Lock& lock);

  // Expandable segments (MUSAExpandableSegment.cpp).
  bool expands();
  std::optional<Block*> expand(StreamPool& home, size_t size);
  Block* block_before(const ExpandableSegment& segment, size_t page);
  Block* link_pages(Block* block);
  Block* detach_pages(Block* block);
  void restore_pages(Block* block);
  musaError_t finish_pages(Block* block);
  DriverOutcome drop_if_unused(ExpandableSegment* segment);
  void count_split(const Block* block, int sign);

  void report(void* ptr, int64_t size, size_t allocated, size_t reserved) const;

  const DeviceIndex device_;

  std::mutex mutex_;
  // Blocks by address: every allocated block and the first block of every segment, and free blocks that were allocated at
  // their address before. So neither reusing a block nor splitting and merging one at the end of a segment touches the map.
  ska::flat_hash_map<const void*, Block*> blocks_;
  BlockStore store_;
  ska::flat_hash_map<MempoolId_t, std::unique_ptr<MemoryPool>, MempoolIdHash> pools_;
  MemoryPool* const default_pool_;
  std::vector<Filling> fillings_; // the one begun last first asked
  std::vector<Block*> deferred_; // freed during a capture, used by other streams; unavailable by pending_events
  std::unordered_map<MUSAStream, std::deque<PendingEvent>> events_; // no empty queues
  std::vector<std::unique_ptr<ExpandableSegment>> expandable_; // those in use
  std::optional<size_t> page_unit_; // the device's unit of virtual memory, 0 without it; read at the first use
  AllocatorStatistics stats_;
  AllocatorTrace trace_; // its atomic part is read before mutex_ is taken
  uint64_t allocations_ = 0; // ever, the time by which free blocks age
  size_t total_memory_ = 0; // of the device; read at the first use
  double fraction_ = 1.0;
};

} // namespace c10::musa::MUSACachingAllocator
