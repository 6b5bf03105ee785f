// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// What the environment says about every process group of this process: TORCH_MCCL_*, with the meanings that TORCH_NCCL_* have.
#pragma once

#include <chrono>
#include <string>

namespace c10d::mccl {

struct Settings {
  // What happens once a call failed or timed out; the numbers are those of TORCH_NCCL_ASYNC_ERROR_HANDLING.
  enum class OnError {
    Ignore = 0,  // nobody looks
    TearDown = 1, // communicators are aborted, and the process ends
    Raise = 2,    // communicators are aborted, and the program gets an exception where it next meets the device or the group
    EndAtOnce = 3 // the process ends; nothing is aborted
  };

  OnError on_error = OnError::Raise; // TORCH_MCCL_ASYNC_ERROR_HANDLING
  bool blocking_wait = false;        // TORCH_MCCL_BLOCKING_WAIT: wait() returns when the call has ended, or raises
  bool propagate_error = true;       // TORCH_MCCL_PROPAGATE_ERROR: a group that fails on one rank fails on all
  bool desync_debug = false;         // TORCH_MCCL_DESYNC_DEBUG: each call's progress goes to the store
  bool timing = false;               // TORCH_MCCL_ENABLE_TIMING
  bool nan_check = false;            // TORCH_MCCL_NAN_CHECK: operands are looked at before they are sent
  bool high_priority = false;        // TORCH_MCCL_HIGH_PRIORITY
  bool record_streams = false;       // TORCH_MCCL_AVOID_RECORD_STREAMS=0: the allocator keeps operands, not the work
  bool dump_on_failure = true;       // TORCH_MCCL_DUMP_ON_TIMEOUT
  bool monitoring = true;            // TORCH_MCCL_ENABLE_MONITORING: a watchdog that hangs ends the process
  std::chrono::seconds heartbeat_timeout{480};      // TORCH_MCCL_HEARTBEAT_TIMEOUT_SEC
  std::chrono::milliseconds coordination{1000};     // TORCH_MCCL_COORD_CHECK_MILSEC: how often the store is asked
  std::chrono::milliseconds dump_patience{15000};   // TORCH_MCCL_WAIT_TIMEOUT_DUMP_MILSEC

  // Raises ValueError for a value that means nothing, naming the variable.
  static Settings from_environment();
};

} // namespace c10d::mccl
