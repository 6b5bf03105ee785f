// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The runtime's per-thread state.
#pragma once

#include <cstdint>

#include "driver_types.h"
#include "engine/export.h"

namespace musa_emulator {

struct PointerInfo {
  musaMemoryType type = musaMemoryTypeUnregistered;
  int device = -1;       // ordinal of the owner; for host memory, the device that was current
  uintptr_t base = 0;
  size_t bytes = 0;
};

struct ThreadState {
  // The kind of work that this thread runs for a stream.
  enum class Running : unsigned char { Nothing, HostFunction, Kernel };

  int device = 0;
  musaError_t last_error = musaSuccess;
  Running running = Running::Nothing;
  // The restriction of this thread's calls during captures; musaThreadExchangeStreamCaptureMode.
  musaStreamCaptureMode capture_mode = musaStreamCaptureModeGlobal;
  uint32_t correlation = 0; // of the current call; activity.h

  // Cache of pointer lookups, valid while the memory generation is unchanged.
  uint64_t cache_generation = 0;
  PointerInfo cache[2];
  unsigned cache_next = 0;

  // The part of each call counter that this thread increments; api.h. Part 0 is shared, the others belong to one
  // thread.
  static constexpr unsigned kCountParts = 8;
  static constexpr unsigned kNoCountPart = kCountParts;
  unsigned own_count_part = kNoCountPart;
  unsigned count_part() noexcept { return own_count_part != kNoCountPart ? own_count_part : take_count_part(); }
  MUSA_ENGINE unsigned take_count_part() noexcept;
};

// Read by every entry point, therefore accessed without a call: initial-exec, in the TLS space that the loader
// reserves for libraries loaded at run time. That space is limited, so this struct must stay small.
extern MUSA_ENGINE constinit thread_local ThreadState current_thread_state [[gnu::tls_model("initial-exec")]];

inline ThreadState& thread_state() noexcept { return current_thread_state; }

} // namespace musa_emulator
