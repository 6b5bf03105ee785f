// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Memory faults: an error message if host code accesses device memory, an error code if a kernel faults.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "engine/export.h"
#include "engine/operation.h"

namespace musa_emulator {

// Called once per process; unhandled faults are passed to the previous handler.
void install_fault_handler();
// While in scope, threads that write to these pages wait. Used while pages are replaced by others with the same
// contents. Only one at a time; the caller holds the memory lock. A system call that writes there fails with EFAULT.
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

// Runs the launch. An invalid access or an exception in it becomes a sticky error of the device.
musaError_t run_guarded(Launch& launch);
// Whether an address is in the guard page of a kernel thread's stack. Set by the code that allocates such stacks;
// called in a signal handler.
MUSA_ENGINE extern std::atomic<bool (*)(uintptr_t address)> is_behind_stack;
// Describes an address without allocating; false outside the memory of devices. Set by that memory's tables.
extern std::atomic<bool (*)(uintptr_t address, char* text, size_t capacity)> describe_device_address;
// As above, for a part of a launch on a separate thread.
MUSA_ENGINE musaError_t run_guarded(const char* kernel, const std::function<musaError_t()>& part);

} // namespace musa_emulator
