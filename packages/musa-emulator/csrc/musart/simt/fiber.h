// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Stacks of GPU threads, and switching between them.
#pragma once

#include <cstddef>

#include "engine/sanitizer.h"

#if !defined(__x86_64__)
// In assembly: pushes the callee-saved registers and exchanges the stack pointers.
extern "C" void musa_simt_switch(void** save, void* load);
#endif

namespace musa_emulator::simt {

// A suspended execution context: its stack pointer, and its fiber for the thread sanitizer, which treats each GPU
// thread as a thread.
struct Context {
  void* stack_pointer = nullptr;
  void* tsan = nullptr;
};

#if defined(__x86_64__)
// Inlined, because processors predict a `ret` from preceding calls, which were made on another stack here. The
// compiler saves the registers that it needs; the red zone below the stack pointer is skipped.
__attribute__((always_inline)) inline void musa_simt_switch(void** save, void* load) {
  asm volatile(
      "leaq -128(%%rsp), %%rsp\n\t"
      "pushq %%rbp\n\t"
      "leaq 1f(%%rip), %%rax\n\t"
      "pushq %%rax\n\t"
      "movq %%rsp, (%0)\n\t"
      "movq %1, %%rsp\n\t"
      "popq %%rax\n\t"
      "jmpq *%%rax\n"
      "1:\n\t"
      "popq %%rbp\n\t"
      "leaq 128(%%rsp), %%rsp"
      : "+D"(save), "+S"(load)
      :
      : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2",
        "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
        "memory", "cc");
}
#endif

// Suspends the caller in `from` and resumes `to`. Returns when the caller is resumed.
__attribute__((always_inline)) inline void switch_to(Context& from, Context& to) {
  if (under_tsan()) {
    __tsan_switch_to_fiber(to.tsan, 1); // 1: the switch is not a synchronization
  }
  musa_simt_switch(&from.stack_pointer, to.stack_pointer);
}

// Stacks of equal size, each with a guard page below. Created on first use and kept.
class Stacks {
 public:
  static constexpr size_t kBytes = 128 << 10; // also printed by the fault handler

  Stacks();
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  // Creates missing stacks up to this number.
  void reserve(size_t count);
  // Prepares the context to start with `entry(argument)` on this stack. `entry` must not return.
  void begin(Context& context, size_t number, void (*entry)(void*), void* argument);

 private:
  char* memory_ = nullptr; // reserved for all stacks
  size_t made_ = 0;
};

// Gives the calling host thread a signal stack, so that it can handle the overflow of one of these stacks.
void prepare_for_overflow();

// The caller's context, to switch back to.
Context current_context();
// Create and destroy the sanitizer's fiber of a context. The sanitizer orders the creation before the fiber's code,
// so GPU threads must not create each other's contexts: their races would be hidden.
void announce(Context& context);
void end(Context& context);

} // namespace musa_emulator::simt
