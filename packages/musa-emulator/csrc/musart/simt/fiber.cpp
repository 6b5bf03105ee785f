// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "simt/fiber.h"

#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>

#include "engine/segfault.h"

extern "C" {
__attribute__((weak)) void* __tsan_get_current_fiber();
__attribute__((weak)) void* __tsan_create_fiber(unsigned flags);
__attribute__((weak)) void __tsan_destroy_fiber(void* fiber);
void musa_simt_start();
}

#if defined(__x86_64__)
asm(R"(
.text
.globl musa_simt_start
.hidden musa_simt_start
.type musa_simt_start,@function
musa_simt_start:
  .cfi_startproc
  .cfi_undefined rip
  popq %rdi
  popq %rax
  callq *%rax
  ud2
  .cfi_endproc
.size musa_simt_start, .-musa_simt_start
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl musa_simt_switch
.hidden musa_simt_switch
.type musa_simt_switch,%function
musa_simt_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size musa_simt_switch, .-musa_simt_switch

.globl musa_simt_start
.hidden musa_simt_start
.type musa_simt_start,%function
musa_simt_start:
  mov x0, x19
  blr x20
  brk #1
.size musa_simt_start, .-musa_simt_start
)");
#endif

namespace musa_emulator::simt {
namespace {

// A multiple of the page size: aarch64 kernels may use pages of 64 KiB.
#if defined(__x86_64__)
constexpr size_t kGuard = 4096;
#else
constexpr size_t kGuard = 64 << 10;
#endif
constexpr size_t kStride = kGuard + Stacks::kBytes;
constexpr size_t kMost = 1024;

// The address ranges of stacks. Read without a lock, because a signal handler reads them; free entries are reused.
constexpr size_t kRegions = 1024;
std::atomic<uintptr_t> regions[kRegions];

bool is_guard(uintptr_t address) {
  for (const std::atomic<uintptr_t>& region : regions) {
    const uintptr_t base = region.load(std::memory_order_relaxed);
    if (base != 0 && address - base < kMost * kStride) {
      return (address - base) % kStride < kGuard;
    }
  }
  return false;
}

} // namespace

Stacks::Stacks() {
  void* memory = mmap(nullptr, kMost * kStride, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::bad_alloc();
  }
  memory_ = static_cast<char*>(memory);
  for (std::atomic<uintptr_t>& region : regions) {
    uintptr_t none = 0;
    if (region.compare_exchange_strong(none, reinterpret_cast<uintptr_t>(memory_))) {
      break; // if all entries are used, an overflow is reported as an ordinary fault
    }
  }
  is_behind_stack = &is_guard;
}

void Stacks::reserve(size_t count) {
  for (; made_ < count; ++made_) {
    if (mprotect(memory_ + made_ * kStride + kGuard, kBytes, PROT_READ | PROT_WRITE) != 0) {
      throw std::bad_alloc();
    }
  }
}

void Stacks::begin(Context& context, size_t number, void (*entry)(void*), void* argument) {
  reserve(number + 1);
  // Stacks start at different offsets, because equal offsets would map to the same cache lines and evict each other.
  const size_t shift = number % 61 * 192;
  auto top = reinterpret_cast<uintptr_t>(memory_ + (number + 1) * kStride - shift) & ~uintptr_t{63};
  auto* frame = reinterpret_cast<void**>(top);
#if defined(__x86_64__)
  *--frame = reinterpret_cast<void*>(entry);
  *--frame = argument;
  *--frame = reinterpret_cast<void*>(&musa_simt_start); // aligned after it pops the two values
#elif defined(__aarch64__)
  frame -= 20;
  for (int i = 0; i < 20; ++i) {
    frame[i] = nullptr;
  }
  frame[0] = argument; // x19
  frame[1] = reinterpret_cast<void*>(entry); // x20
  frame[11] = reinterpret_cast<void*>(&musa_simt_start); // x30
#endif
  context.stack_pointer = frame;
}

Stacks::~Stacks() {
  for (std::atomic<uintptr_t>& region : regions) {
    auto own = reinterpret_cast<uintptr_t>(memory_);
    if (region.compare_exchange_strong(own, 0)) {
      break;
    }
  }
  munmap(memory_, kMost * kStride);
}

void prepare_for_overflow() {
  constexpr size_t bytes = 64 << 10;
  struct Alternate {
    std::unique_ptr<char[]> memory;
    Alternate() {
      stack_t now = {};
      if (sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_DISABLE) != 0) {
        memory = std::make_unique<char[]>(bytes);
        stack_t ours = {};
        ours.ss_sp = memory.get();
        ours.ss_size = bytes;
        sigaltstack(&ours, nullptr);
      }
    }
    ~Alternate() {
      if (memory != nullptr) {
        stack_t none = {};
        none.ss_flags = SS_DISABLE;
        sigaltstack(&none, nullptr);
      }
    }
  };
  static thread_local const Alternate alternate;
  (void)alternate;
}

Context current_context() { return {nullptr, under_tsan() ? __tsan_get_current_fiber() : nullptr}; }

void announce(Context& context) {
  if (under_tsan() && context.tsan == nullptr) {
    context.tsan = __tsan_create_fiber(0);
  }
}

void end(Context& context) {
  if (context.tsan != nullptr) {
    __tsan_destroy_fiber(context.tsan);
    context.tsan = nullptr;
  }
}

} // namespace musa_emulator::simt
