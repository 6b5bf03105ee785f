// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/musa/MUSAAllocatorTrace.h>
#include <c10/musa/MUSAMacros.h>
#include <c10/musa/MUSAStream.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

// Memory of musa devices, cached: freed memory stays with the process and is handed out again, in stream order, without
// a call to the SDK. Registered with torch for the device type, so torch.accelerator.* memory functions work.
//
// Locking: one mutex per device, see MUSADeviceCachingAllocator.h. Nothing in this namespace takes the GIL; a caller that
// holds the GIL may call in (lock order: GIL, then allocator). Memory may be freed on any thread, whatever its device.
//
// A size in bytes is rounded up to a multiple of 512. Device -1 means the current device.
namespace c10::musa::MUSACachingAllocator {

// An allocator that musa tensors, or the segments of a private pool, can come from. Called with no lock of the caching
// allocator held, from any thread; the current device is that of the memory.
class C10_MUSA_API MUSAAllocator : public c10::DeviceAllocator {
 public:
  // On the current device and its current stream, or on a stream of the current device. Null when there is no memory.
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

// Where musa tensors get their memory: the caching allocator ("native"), unless another was put in its place.
C10_MUSA_API MUSAAllocator* get();
// The same for memory of one device, which need not be the current one, on the device's current stream.
C10_MUSA_API c10::Allocator* on(DeviceIndex device);
// For good. Only before the caching allocator has taken memory; raises afterwards, for memory must go back to where it
// came from.
C10_MUSA_API void changeCurrentAllocator(std::shared_ptr<MUSAAllocator> allocator);

// On the current device and its current stream, or on a stream of the current device. Size 0 gives null.
// Raises c10::OutOfMemoryError.
C10_MUSA_API void* raw_alloc(size_t nbytes);
C10_MUSA_API void* raw_alloc_with_stream(size_t nbytes, musaStream_t stream);
// Raises for a pointer that raw_alloc did not give, or that was freed before. Null is allowed.
C10_MUSA_API void raw_delete(void* ptr);

// The deleter of every DataPtr made here, and a proof of origin: a DataPtr that has it is device memory, whatever device
// the DataPtr is labelled with. Its context is the data pointer.
C10_MUSA_API c10::DeleterFnPtr deleter();

// Allocates on the current device and stream, and labels the result with another device: memory that a CPU kernel fills
// and that then becomes a musa tensor's without a copy.
C10_MUSA_API c10::DataPtr allocate_as(size_t nbytes, c10::Device label);

// Gives cached segments that hold no live block back to the device; waits for the device. With the id of a private pool,
// those of that pool alone; without, those of the default pool and of the private pools that nobody holds any more.
// Does nothing while a stream of the process captures, which waiting would spoil.
C10_MUSA_API void emptyCache(c10::MempoolId_t id = {0, 0});

// Private pools: memory for a graph, whose replays use the same addresses, or for a MemPool. A block returns to the pool
// that it came from. A pool has holders, counted: createOrIncrefPool and beginAllocateToPool add one, releasePool takes
// one away. While a pool is held its segments stay; afterwards they are cached memory like any other. Device -1 means the
// current one; the default pool, {0, 0}, is not private.

// From now on, allocations on streams for which filter(stream) is true come from the pool, which is made if it is not
// there. The pool begun last is asked first. The filter is called under the allocator's lock, on the thread that
// allocates: it must not take the GIL, allocate, or wait. Raises where the pool is being filled already.
C10_MUSA_API void beginAllocateToPool(
    DeviceIndex device,
    c10::MempoolId_t id,
    std::function<bool(musaStream_t)> filter);
C10_MUSA_API void endAllocateToPool(DeviceIndex device, c10::MempoolId_t id);
// With an allocator, the pool's segments come from it, in place of musaMalloc.
C10_MUSA_API void createOrIncrefPool(
    DeviceIndex device,
    c10::MempoolId_t id,
    std::shared_ptr<MUSAAllocator> allocator = nullptr);
C10_MUSA_API void releasePool(DeviceIndex device, c10::MempoolId_t id);
// 0 for a pool that is not there.
C10_MUSA_API int getPoolUseCount(DeviceIndex device, c10::MempoolId_t id);
// Free blocks of the pool serve others before they run out of memory.
C10_MUSA_API void setUseOnOOM(DeviceIndex device, c10::MempoolId_t id, bool use_on_oom);
// From now on the pool's segments are never split: each is as large as the request that made it.
C10_MUSA_API void setNoSplit(DeviceIndex device, c10::MempoolId_t id);

// Around every stream capture, from before it begins until after it ended or failed. Meanwhile the allocator records and
// queries no event and frees no segment; what record_stream holds back is held back until the last capture has ended.
C10_MUSA_API void markCaptureBegin(DeviceIndex device);
C10_MUSA_API void markCaptureEnd(DeviceIndex device);
// The memory is reused only after the work queued on the stream until the free has finished. Ignores foreign memory.
C10_MUSA_API void recordStream(const c10::DataPtr& data, MUSAStream stream);

C10_MUSA_API c10::CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex device);
C10_MUSA_API void resetPeakStats(DeviceIndex device);
C10_MUSA_API void resetAccumulatedStats(DeviceIndex device);

// Limits the memory reserved by this process to a fraction, in [0, 1], of the device's total.
C10_MUSA_API void setMemoryFraction(double fraction, DeviceIndex device);
C10_MUSA_API void setMemoryFractionOfAllDevices(double fraction);
C10_MUSA_API double getMemoryFraction(DeviceIndex device);

// (bytes in free blocks of the cache, bytes of the largest one)
C10_MUSA_API std::pair<size_t, size_t> cacheInfo(DeviceIndex device);
// Every segment of every device with its blocks, or those of one pool; with include_traces the recorded history too.
C10_MUSA_API SnapshotInfo snapshot(c10::MempoolId_t id = {0, 0}, bool include_traces = true);

// Records what happens to memory, the newest max_entries of it on each device, with the stacks that context_recorder
// gathers (on the thread that allocates or frees, without a lock). Device -1 means every device.
C10_MUSA_API void recordHistory(
    bool enabled, c10::CachingDeviceAllocator::CreateContextFn context_recorder, size_t alloc_trace_max_entries,
    RecordContext when, bool clearHistory, const std::vector<std::string>& skip_actions, DeviceIndex device = -1);
C10_MUSA_API bool isHistoryEnabled();
// Notes of the program that go into the history: entries of their own, and marks on those of this thread.
C10_MUSA_API void recordAnnotation(const std::vector<std::pair<std::string, std::string>>& metadata);
C10_MUSA_API void pushCompileContext(std::string& context);
C10_MUSA_API void popCompileContext();
C10_MUSA_API void setUserMetadata(const std::string& metadata);
C10_MUSA_API std::string getUserMetadata();
// Where a live allocation was made; null when that was not recorded.
C10_MUSA_API std::shared_ptr<c10::GatheredContext> getContextForPointer(const void* ptr);
// The tracker runs under the lock of a device: it must not take the GIL, allocate device memory or throw. For good.
C10_MUSA_API void attachAllocatorTraceTracker(AllocatorTraceTracker tracker);
// The observer runs without a lock, before the allocation fails. For good.
C10_MUSA_API void attachOutOfMemoryObserver(OutOfMemoryObserver observer);

// The segment that holds an allocation, and its size in bytes: what an IPC handle is made for. Raises for a pointer that
// is not the start of a live allocation.
C10_MUSA_API void* getBaseAllocation(void* ptr, size_t* size);
// Whether ptr is the start of a live allocation.
C10_MUSA_API bool owns(const void* ptr);

// Where freed memory may be waiting (shared with other processes that have released it since): asked, without a lock, before
// the device is asked for a segment. Returns whether any came back.
C10_MUSA_API void set_reclaimer(bool (*reclaimer)());
C10_MUSA_API bool reclaim();

// False when PYTORCH_NO_MUSA_MEMORY_CACHING=1: each allocation is one of the SDK's and is returned at once, so that
// memory checkers see every out-of-bounds access.
C10_MUSA_API extern std::atomic<bool> caching_enabled;
inline bool isEnabled() {
  return caching_enabled.load(std::memory_order_relaxed);
}
// Turns caching on or off for what is allocated and freed from now on.
C10_MUSA_API void enable(bool value);

// Nanoseconds per allocate-and-free pair on the current device, for benchmarks.
C10_MUSA_API double bench(size_t nbytes, int iterations);

} // namespace c10::musa::MUSACachingAllocator
