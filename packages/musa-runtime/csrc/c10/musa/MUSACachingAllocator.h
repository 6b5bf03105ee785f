// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/musa/MUSAMacros.h>
#include <c10/musa/MUSAStream.h>

// Memory of musa devices, cached: freed memory stays with the process and is handed out again, in stream order, without
// a call to the SDK. Registered with torch for the device type, so torch.accelerator.* memory functions work.
//
// Locking: one mutex per device, see MUSADeviceCachingAllocator.h. Nothing in this namespace takes the GIL; a caller that
// holds the GIL may call in (lock order: GIL, then allocator). Memory may be freed on any thread, whatever its device.
//
// A size in bytes is rounded up to a multiple of 512. Device -1 means the current device.
namespace c10::musa::MUSACachingAllocator {

C10_MUSA_API c10::DeviceAllocator* get();

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

// Gives cached segments that hold no live block back to the device; waits for the device.
C10_MUSA_API void emptyCache(c10::MempoolId_t id = {0, 0});
// The memory is reused only after the work queued on the stream until the free has finished. Ignores foreign memory.
C10_MUSA_API void recordStream(const c10::DataPtr& data, MUSAStream stream);

C10_MUSA_API c10::CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex device);
C10_MUSA_API void resetPeakStats(DeviceIndex device);
C10_MUSA_API void resetAccumulatedStats(DeviceIndex device);

// Limits the memory reserved by this process to a fraction, in [0, 1], of the device's total.
C10_MUSA_API void setMemoryFraction(double fraction, DeviceIndex device);
C10_MUSA_API double getMemoryFraction(DeviceIndex device);

// (bytes in free blocks of the cache, bytes of the largest one)
C10_MUSA_API std::pair<size_t, size_t> cacheInfo(DeviceIndex device);
// Every segment of every device with its blocks, in address order.
C10_MUSA_API std::vector<c10::CachingDeviceAllocator::SegmentInfo> snapshot();

// The segment that holds an allocation, and its size in bytes: what an IPC handle is made for. Raises for a pointer that
// is not the start of a live allocation.
C10_MUSA_API void* getBaseAllocation(void* ptr, size_t* size);
// Whether ptr is the start of a live allocation.
C10_MUSA_API bool owns(const void* ptr);

// False when PYTORCH_NO_MUSA_MEMORY_CACHING=1: each allocation is one of the SDK's and is returned at once, so that
// memory checkers see every out-of-bounds access.
C10_MUSA_API bool isEnabled();

// Nanoseconds per allocate-and-free pair on the current device, for benchmarks.
C10_MUSA_API double bench(size_t nbytes, int iterations);

} // namespace c10::musa::MUSACachingAllocator
