// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/allocator/MUSAAllocatorMutex.h>

namespace c10::musa::MUSACachingAllocator {

// A thread that has waited locks with kWaitedFor, since others may still wait; at worst it makes a needless wake-up call
// when it unlocks.
void AllocatorMutex::wait() noexcept {
  while (state_.exchange(kWaitedFor, std::memory_order_acquire) != kUnlocked) {
    state_.wait(kWaitedFor, std::memory_order_relaxed);
  }
}

void AllocatorMutex::wake() noexcept { state_.notify_one(); }

} // namespace c10::musa::MUSACachingAllocator
