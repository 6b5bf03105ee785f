// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/Allocator.h>
#include <c10/musa/MUSAMacros.h>
#include <c10/musa/MUSAStream.h>

// Functions that parts above the allocator register, and that the allocator calls without a lock. At most one of each kind.
namespace c10::musa::MUSACachingAllocator {

// Frees memory whose release is pending, such as memory that other processes have released. Called before a segment is
// requested from the device. Returns whether any memory was freed.
C10_MUSA_API void set_reclaimer(bool (*reclaimer)());
C10_MUSA_API bool reclaim();

// Records a stream for memory that the allocator has not allocated; ignores memory that it does not own either.
void set_stream_recorder_of_foreign(void (*recorder)(const c10::DataPtr& data, MUSAStream stream));
void record_stream_of_foreign(const c10::DataPtr& data, MUSAStream stream);

} // namespace c10::musa::MUSACachingAllocator
