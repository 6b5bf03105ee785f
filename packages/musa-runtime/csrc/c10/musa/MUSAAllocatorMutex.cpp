// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSAAllocatorMutex.h>

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace c10::musa::MUSACachingAllocator {
namespace {

// Sections are short, so most threads that find the mutex locked need not sleep.
constexpr int kTries = 64;

long futex(std::atomic<int>& word, int operation, int value, const timespec* timeout) {
  static_assert(sizeof(std::atomic<int>) == sizeof(int) && std::atomic<int>::is_always_lock_free);
  return syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

// Makes every running thread of this process pass a memory barrier. False where the kernel or a sandbox has no such call.
bool all_threads_pass_a_barrier() {
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) {
    return true;
  }
  // The first call of the process: it has to register.
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
      syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

} // namespace

void AllocatorMutex::wait() noexcept {
  for (int i = 0; i < kTries; ++i) {
    sched_yield();
    if (try_lock()) {
      return;
    }
  }
  waiting_.fetch_add(1, std::memory_order_seq_cst);
  // Without the barrier an unlocking thread may miss this one, which then looks again by itself.
  constexpr timespec kMillisecond{0, 1'000'000};
  const timespec* const patience = all_threads_pass_a_barrier() ? nullptr : &kMillisecond;
  while (!try_lock()) {
    futex(state_, FUTEX_WAIT_PRIVATE, kLocked, patience);
  }
  waiting_.fetch_sub(1, std::memory_order_relaxed);
}

void AllocatorMutex::wake() noexcept {
  futex(state_, FUTEX_WAKE_PRIVATE, 1, nullptr);
}

} // namespace c10::musa::MUSACachingAllocator
