// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/CachingHostAllocator.h>
#include <c10/musa/MUSAMacros.h>

namespace at::musa {

// Page-locked host memory, cached, that the device can copy from and to asynchronously. A block handed to
// record_event(ptr, ctx, stream) is reused only after the work queued on that stream until the free has finished.
// Locking: torch's CachingHostAllocatorImpl; no SDK call is made while one of its locks is held, except free.
C10_MUSA_API at::HostAllocator* getPinnedMemoryAllocator();

// Whether data points into page-locked host memory, whoever allocated it; interior pointers count.
C10_MUSA_API bool isPinnedPtr(const void* data);

} // namespace at::musa
