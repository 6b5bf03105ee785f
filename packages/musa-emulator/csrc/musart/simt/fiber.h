// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Stacks, and switching between them.
#pragma once

#include <cstddef>

#include "engine/sanitizer.h"

#if !defined(__x86_64__)
// In assembly: keeps what a call must keep on the stack, and exchanges stack pointers.
extern "C" void musa_simt_switch(void** save, void* load);
#endif

namespace musa_emulator::simt {

// A flow of control that is not running: where its registers lie, and what the thread sanitizer, to which each GPU thread is a
// thread, knows it by.
struct Context {
  void* stack_pointer = nullptr;
  void* tsan = nullptr;
};

#if defined(__x86_64__)
// In place, not a function: processors guess where a `ret` goes from the calls before it, and here those were made on
// another stack. The compiler saves the registers that it needs; the red zone below the stack is its own.
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
      : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3",
        "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "memory",
        "cc");
}
#endif

// Saves the caller in `from` and goes on in `to`. Returns when somebody switches back.
__attribute__((always_inline)) inline void switch_to(Context& from, Context& to) {
  if (under_tsan()) {
    __tsan_switch_to_fiber(to.tsan, 1); // 1: the switch itself orders nothing
  }
  musa_simt_switch(&from.stack_pointer, to.stack_pointer);
}

// Stacks of one size with a guard page below each, made when first needed and kept.
class Stacks {
 public:
  static constexpr size_t kBytes = 128 << 10; // fault handlers say this number too

  Stacks();
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  // Makes those that are not there yet, up to this number of them.
  void reserve(size_t count);
  // The context begins with `entry(argument)` on the stack of this number. `entry` must not return.
  void begin(Context& context, size_t number, void (*entry)(void*), void* argument);

 private:
  char* memory_ = nullptr; // of all of them, reserved
  size_t made_ = 0;
};

// Lets the calling thread of the host take signals while it runs on a stack of these that is full.
void prepare_for_overflow();

// Of the caller, for the switch back to it.
Context current_context();
// What sanitizers know of a context begins and ends. To them whoever makes a context has done so before it runs, so contexts
// of threads that are to race are not made by one another.
void announce(Context& context);
void end(Context& context);

} // namespace musa_emulator::simt
