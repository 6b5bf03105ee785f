// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <atomic>
#include <mutex>

namespace c10::musa::MUSACachingAllocator {

// The mutex of a device's cache. It is locked twice for every tensor, for about twenty nanoseconds. std::mutex calls the C
// library to lock and to unlock, which takes as long as the section itself; here each is one inlined atomic instruction.
// Only a thread that finds the mutex locked makes a call; the thread that unlocks wakes it. Not recursive.
class AllocatorMutex {
 public:
  AllocatorMutex() = default;
  AllocatorMutex(const AllocatorMutex&) = delete;
  AllocatorMutex& operator=(const AllocatorMutex&) = delete;

  void lock() noexcept {
    if (!try_lock()) [[unlikely]] {
      wait();
    }
  }
  bool try_lock() noexcept {
    int unlocked = kUnlocked;
    return state_.compare_exchange_strong(unlocked, kLocked, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void unlock() noexcept {
    if (state_.exchange(kUnlocked, std::memory_order_release) == kWaitedFor) [[unlikely]] {
      wake();
    }
  }

 private:
  static constexpr int kUnlocked = 0;
  static constexpr int kLocked = 1;
  static constexpr int kWaitedFor = 2; // locked, and threads may wait for it

  void wait() noexcept;
  void wake() noexcept;

  std::atomic<int> state_{kUnlocked};
};

using AllocatorLock = std::unique_lock<AllocatorMutex>;

} // namespace c10::musa::MUSACachingAllocator
