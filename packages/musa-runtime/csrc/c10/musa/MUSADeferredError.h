// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAMacros.h>

#include <atomic>
#include <exception>
#include <string>

// Errors of work that runs for a stream, where no caller can catch them: a recorded call in a replayed graph, a collective
// whose other ranks have ended. They are kept, and raised when the host next waits for the device, as a kernel's error
// would be.
namespace c10::musa {

C10_MUSA_API extern std::atomic<bool> deferred_error_pending;

// Callable from host functions: makes no SDK call.
C10_MUSA_API void defer_error(std::string message);
C10_MUSA_API void defer_error(std::exception_ptr error);

// From its construction until the thread that constructed it defers an error (or destroys it), waits of other threads
// that have ended block for that error, for a minute at most. For a thread that has found a failure and still collects
// the content of its message: meanwhile the failed work may end, with results of no meaning.
class C10_MUSA_API ComingError {
 public:
  ComingError();
  ~ComingError();
  ComingError(const ComingError&) = delete;
  ComingError& operator=(const ComingError&) = delete;
};

// Drops an error that the program has already received elsewhere.
C10_MUSA_API void forget_deferred_error(const std::exception_ptr& error);
C10_MUSA_API void raise_deferred_error();

inline void check_deferred_error() {
  if (deferred_error_pending.load(std::memory_order_acquire)) [[unlikely]] {
    raise_deferred_error();
  }
}

} // namespace c10::musa
