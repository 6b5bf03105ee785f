// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// What the runtime keeps per thread.
#pragma once

#include <cstdint>

#include "driver_types.h"
#include "engine/export.h"

namespace musa_emulator {

struct PointerInfo {
  musaMemoryType type = musaMemoryTypeUnregistered;
  int device = -1;       // ordinal of the owner; for host memory the device that was current
  uintptr_t base = 0;
  size_t bytes = 0;
};

struct ThreadState {
  // What the thread is running on behalf of a stream.
  enum class Running : unsigned char { Nothing, HostFunction, Kernel };

  int device = 0;
  musaError_t last_error = musaSuccess;
  Running running = Running::Nothing;
  // How captures restrict this thread's calls; musaThreadExchangeStreamCaptureMode.
  musaStreamCaptureMode capture_mode = musaStreamCaptureModeGlobal;
  uint32_t correlation = 0; // of the call that is under way; activity.h

  // The last pointers looked up. Valid while the memory generation is unchanged.
  uint64_t cache_generation = 0;
  PointerInfo cache[2];
  unsigned cache_next = 0;

  // The part of each count of calls that this thread adds to; api.h. Part 0 is shared, a part above it is this thread's own.
  static constexpr unsigned kCountParts = 8;
  static constexpr unsigned kNoCountPart = kCountParts;
  unsigned own_count_part = kNoCountPart;
  unsigned count_part() noexcept {
    return own_count_part != kNoCountPart ? own_count_part : take_count_part();
  }
  MUSA_ENGINE unsigned take_count_part() noexcept;
};

// Every entry point reads it, so it is addressed without a call: initial-exec, in the memory that the loader reserves for
// libraries that are loaded while a program runs. It is small for that reason.
extern MUSA_ENGINE constinit thread_local ThreadState current_thread_state [[gnu::tls_model("initial-exec")]];

inline ThreadState& thread_state() noexcept {
  return current_thread_state;
}

} // namespace musa_emulator
