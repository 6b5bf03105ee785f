// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Memory faults: an explanation for host code that touches device memory, an error for kernels.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "engine/export.h"
#include "engine/operation.h"

namespace musa_emulator {

// Once per process; chains to the handler that was there.
void install_fault_handler();
// While in scope, threads that write to these pages wait: for pages that are being replaced by others with the same
// contents. One at a time; the caller holds the memory lock. A system call that writes there fails with EFAULT.
class WritersHeldOff {
 public:
  WritersHeldOff(uintptr_t base, size_t bytes);
  ~WritersHeldOff();
  WritersHeldOff(const WritersHeldOff&) = delete;
  WritersHeldOff& operator=(const WritersHeldOff&) = delete;

 private:
  uintptr_t base_;
  size_t bytes_;
};

// Runs the launch; an invalid access or an exception inside it becomes the error that loses the device.
musaError_t run_guarded(Launch& launch);
// Of an address below the stack of a kernel's thread: whether it is one. Set by whoever makes such stacks; called in a signal
// handler.
MUSA_ENGINE extern std::atomic<bool (*)(uintptr_t address)> is_behind_stack;
// The same for a part of a launch, on a thread of its own.
MUSA_ENGINE musaError_t run_guarded(const char* kernel, const std::function<musaError_t()>& part);

} // namespace musa_emulator
