// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/musa/MUSAAllocator.h>
#include <c10/musa/allocator/MUSAAllocatorTrace.h>
#include <c10/musa/MUSAMacros.h>
#include <c10/musa/MUSAStream.h>

#include <functional>
#include <memory>
#include <string>

// The caching allocator for musa devices: freed memory stays with the process and is allocated again, in stream order,
// without an SDK call. Registered with torch for the device type, so the memory functions of torch.accelerator work.
//
// Locking: one mutex per device, see MUSADeviceCachingAllocator.h. Nothing in this namespace takes the GIL; a caller that
// holds the GIL may call in (lock order: GIL, then allocator). Memory may be freed on any thread, whatever its device.
//
// Sizes in bytes are rounded up to a multiple of 512. Device -1 means the current device.
namespace c10::musa::MUSACachingAllocator {

// The allocator of musa tensors: the caching allocator ("native") unless changeCurrentAllocator replaced it.
C10_MUSA_API MUSAAllocator* get();
// The same for memory of one device, which may differ from the current one, on the device's current stream.
C10_MUSA_API c10::Allocator* on(DeviceIndex device);
// Permanent. Raises once the caching allocator has allocated memory, since memory must be freed by its own allocator.
C10_MUSA_API void changeCurrentAllocator(std::shared_ptr<MUSAAllocator> allocator);

// Allocates on the current device, on its current stream or the given one. Returns null for size 0.
// Raises c10::OutOfMemoryError.
C10_MUSA_API void* raw_alloc(size_t nbytes);
C10_MUSA_API void* raw_alloc_with_stream(size_t nbytes, musaStream_t stream);
// Raises for a pointer that raw_alloc did not return, or that is already freed. Null is allowed.
C10_MUSA_API void raw_delete(void* ptr);

// The deleter of every DataPtr made here. A DataPtr with this deleter is device memory, whatever device it is labelled
// with. Its context is the data pointer.
C10_MUSA_API c10::DeleterFnPtr deleter();

// Allocates on the current device and stream, labelled CPU: memory that a CPU kernel fills and that becomes the memory of a
// musa tensor without a copy. Waits for the stream after the allocation: another thread that freed the block may have left
// work on the stream that still writes to it. Requires memory that the host can address.
C10_MUSA_API c10::DataPtr allocate_for_host(size_t nbytes);

// Releases cached segments without live blocks to the device, after synchronizing it. With the id of a private pool, only
// those of that pool; otherwise, those of the default pool and of private pools without holders. Does nothing while a
// stream of the process captures, since synchronizing would invalidate the capture.
C10_MUSA_API void emptyCache(c10::MempoolId_t id = {0, 0});

// Private pools: memory for a graph, whose replays use the same addresses, or for a MemPool. A block returns to its own
// pool. Holders are counted: createOrIncrefPool and beginAllocateToPool add one, releasePool removes one. The segments of a
// held pool are kept; afterwards they are cached memory like any other. Device -1 means the current one; the default pool,
// {0, 0}, is not private.

// From now on, allocations on streams for which filter(stream) is true come from the pool, which is created if needed.
// Among several such pools, the last one begun has precedence. The filter is called under the allocator's lock, on the
// thread that allocates: it must not take the GIL, allocate, or wait. Raises if the pool is already being filled.
C10_MUSA_API void beginAllocateToPool(
    DeviceIndex device, c10::MempoolId_t id, std::function<bool(musaStream_t)> filter);
C10_MUSA_API void endAllocateToPool(DeviceIndex device, c10::MempoolId_t id);
// With an allocator, the pool's segments come from it instead of musaMalloc.
C10_MUSA_API void createOrIncrefPool(
    DeviceIndex device, c10::MempoolId_t id, std::shared_ptr<MUSAAllocator> allocator = nullptr);
C10_MUSA_API void releasePool(DeviceIndex device, c10::MempoolId_t id);
// Returns 0 if the pool does not exist.
C10_MUSA_API int getPoolUseCount(DeviceIndex device, c10::MempoolId_t id);
// Free blocks of the pool may serve other requests before these run out of memory.
C10_MUSA_API void setUseOnOOM(DeviceIndex device, c10::MempoolId_t id, bool use_on_oom);
// From now on the pool's segments are never split: each is as large as the request that made it.
C10_MUSA_API void setNoSplit(DeviceIndex device, c10::MempoolId_t id);

// Called before a stream capture begins, and after it has ended or failed. In between, the allocator records and queries no
// event and frees no segment; memory that waits for other streams waits until the last capture has ended.
C10_MUSA_API void markCaptureBegin(DeviceIndex device);
C10_MUSA_API void markCaptureEnd(DeviceIndex device);
// The memory is reused only after the work queued on the stream before the free has finished. Ignores foreign memory.
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
// Every segment of every device with its blocks, or those of one pool; with include_traces, also the recorded history.
C10_MUSA_API SnapshotInfo snapshot(c10::MempoolId_t id = {0, 0}, bool include_traces = true);

// Records the history of memory, the newest max_entries entries on each device, with the stacks that context_recorder
// gathers (on the thread that allocates or frees, without a lock). Device -1 means every device.
C10_MUSA_API void recordHistory(
    bool enabled, c10::CachingDeviceAllocator::CreateContextFn context_recorder, size_t alloc_trace_max_entries,
    RecordContext when, bool clearHistory, const std::vector<std::string>& skip_actions, DeviceIndex device = -1);
C10_MUSA_API bool isHistoryEnabled();
// Notes of the program in the history: separate entries, and marks on the entries of this thread.
C10_MUSA_API void recordAnnotation(const std::vector<std::pair<std::string, std::string>>& metadata);
C10_MUSA_API void pushCompileContext(std::string& context);
C10_MUSA_API void popCompileContext();
C10_MUSA_API void setUserMetadata(const std::string& metadata);
C10_MUSA_API std::string getUserMetadata();
// The stack that made a live allocation; null if none was recorded.
C10_MUSA_API std::shared_ptr<c10::GatheredContext> getContextForPointer(const void* ptr);
// The tracker runs under the lock of a device: it must not take the GIL, allocate device memory or throw. Permanent.
C10_MUSA_API void attachAllocatorTraceTracker(AllocatorTraceTracker tracker);
// The observer runs without a lock, before the allocation fails. Permanent.
C10_MUSA_API void attachOutOfMemoryObserver(OutOfMemoryObserver observer);

// The segment that holds an allocation, and its size in bytes, for which an IPC handle is made. Raises for a pointer that
// is not the start of a live allocation.
C10_MUSA_API void* getBaseAllocation(void* ptr, size_t* size);
// Whether ptr is the start of a live allocation.
C10_MUSA_API bool owns(const void* ptr);

// Gives `peer` access to memory of `device` in expandable segments; musaDeviceEnablePeerAccess gives access to the rest.
void allowPeer(DeviceIndex device, DeviceIndex peer);

// Nanoseconds per allocate-and-free pair on the current device, for benchmarks.
C10_MUSA_API double bench(size_t nbytes, int iterations);

} // namespace c10::musa::MUSACachingAllocator
