// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Stacks, and switching between them.
#pragma once

#include <cstddef>

namespace musa_emulator::simt {

// A flow of control that is not running: where its registers lie. Sanitizers keep books of their own about each.
struct Context {
  void* stack_pointer = nullptr;
  void* tsan = nullptr;
};

// Saves the caller in `from` and goes on in `to`. Returns when somebody switches back.
void switch_to(Context& from, Context& to);

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

// Each GPU thread is one to the sanitizer that the process runs under.
bool under_tsan();
// Of the caller, for the switch back to it.
Context current_context();
// What sanitizers know of a context begins and ends. To them whoever makes a context has done so before it runs, so contexts
// of threads that are to race are not made by one another.
void announce(Context& context);
void end(Context& context);

} // namespace musa_emulator::simt
