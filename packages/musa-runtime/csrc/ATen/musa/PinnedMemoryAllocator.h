// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/CachingHostAllocator.h>
#include <c10/musa/MUSAMacros.h>

namespace at::musa {

// The caching allocator of page-locked host memory, from and to which the device copies asynchronously. A block passed to
// record_event(ptr, ctx, stream) is reused only after the work queued on that stream before the free has finished. Locking:
// torch's CachingHostAllocatorImpl; no SDK call is made while one of its locks is held, except free.
C10_MUSA_API at::HostAllocator* getPinnedMemoryAllocator();

// Whether data points into page-locked host memory of any allocator; interior pointers count.
C10_MUSA_API bool isPinnedPtr(const void* data);

} // namespace at::musa
