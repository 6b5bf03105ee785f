// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <atomic>
#include <mutex>

namespace c10::musa::MUSACachingAllocator {

// The mutex of a device's cache. It is locked twice for every tensor, for about twenty nanoseconds: std::mutex calls the C
// library for locking and for unlocking, which takes as long as the section itself. Here locking is one atomic instruction
// in place, and unlocking a plain store and a load. Not recursive.
//
// A processor may carry out that load before the store, so an unlocking thread could miss a thread that begins to wait, and
// that one could miss the store. The thread that waits therefore makes every running thread of the process pass a memory
// barrier (membarrier(2)) between counting itself and looking at the state again.
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
    state_.store(kUnlocked, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst); // the compiler keeps the order
    if (waiting_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      wake();
    }
  }

 private:
  static constexpr int kUnlocked = 0;
  static constexpr int kLocked = 1;

  void wait() noexcept;
  void wake() noexcept;

  std::atomic<int> state_{kUnlocked};
  std::atomic<int> waiting_{0}; // threads in wait()
};

using AllocatorLock = std::unique_lock<AllocatorMutex>;

} // namespace c10::musa::MUSACachingAllocator
