// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAMacros.h>

#include <atomic>

namespace musa_runtime {

// The number of captures in progress in this process, on any thread.
C10_MUSA_API extern std::atomic<int> captures_running;

// Whether the current stream of the current device belongs to one of them.
C10_MUSA_API bool current_stream_is_recorded();

// Checked before every native call: one load and one branch unless a graph is being captured on some thread.
inline bool capturing() {
  return captures_running.load(std::memory_order_relaxed) != 0 && current_stream_is_recorded();
}

} // namespace musa_runtime
