// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/macros/Macros.h>

#include <algorithm>
#include <atomic>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace c10::musa {

// A mutex for critical sections of some tens of nanoseconds. A thread that finds it taken waits a while before it looks
// again, longer each time, and sleeps only after some twenty looks. Both matter where threads meet here often: a handover
// that puts a thread to sleep and wakes it costs microseconds, and one that does not still moves everything the mutex guards
// to another core's cache, so whoever has it had better get several sections done before the next one does.
// Not recursive, not fair.
class AdaptiveMutex {
 public:
  AdaptiveMutex() = default;
  AdaptiveMutex(const AdaptiveMutex&) = delete;
  AdaptiveMutex& operator=(const AdaptiveMutex&) = delete;

  bool try_lock() noexcept {
    int expected = kFree;
    return state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire, std::memory_order_relaxed);
  }

  void lock() noexcept {
    if (C10_UNLIKELY(!try_lock())) {
      lock_contended();
    }
  }

  void unlock() noexcept {
    if (C10_UNLIKELY(state_.exchange(kFree, std::memory_order_release) == kAwaited)) {
      state_.notify_one();
    }
  }

 private:
  static constexpr int kFree = 0;
  static constexpr int kHeld = 1;
  static constexpr int kAwaited = 2; // held, and somebody may sleep
  static constexpr int kLooks = 20;
  static constexpr int kLongestWait = 128; // instructions; some microseconds

  C10_NOINLINE void lock_contended() noexcept {
    int wait = 1;
    for (int look = 0; look < kLooks; ++look) {
      for (int i = 0; i < wait; ++i) {
        pause();
      }
      if (state_.load(std::memory_order_relaxed) == kFree && try_lock()) {
        return;
      }
      wait = std::min(2 * wait, kLongestWait);
    }
    // From here on the mutex counts as awaited: a wake-up too many is harmless, one too few is not.
    while (state_.exchange(kAwaited, std::memory_order_acquire) != kFree) {
      state_.wait(kAwaited, std::memory_order_relaxed);
    }
  }

  static void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  std::atomic<int> state_{kFree};
};

} // namespace c10::musa
