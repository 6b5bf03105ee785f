// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Settings of all process groups of this process, from the environment variables TORCH_MCCL_*, which mean the same as
// TORCH_NCCL_*.
#pragma once

#include <chrono>
#include <initializer_list>
#include <string>

namespace c10d::mccl {

// The value of the first variable that is set and not empty, or `otherwise`. Raises ValueError, with the variable's name, for
// an invalid value.
bool environment_flag(std::initializer_list<std::string> names, bool otherwise);
int environment_number(std::initializer_list<std::string> names, int otherwise, int least, int most);

struct Settings {
  // Reaction to a failure or timeout of a call; the values are those of TORCH_NCCL_ASYNC_ERROR_HANDLING.
  enum class OnError {
    Ignore = 0,  // failures are not detected
    TearDown = 1, // communicators are aborted, and the process ends
    Raise = 2,    // communicators are aborted, and the program's next wait or call on the group raises an error
    EndAtOnce = 3 // the process ends; nothing is aborted
  };

  OnError on_error = OnError::Raise; // TORCH_MCCL_ASYNC_ERROR_HANDLING
  // TORCH_MCCL_BLOCKING_WAIT: wait() returns when the call has finished, or raises its error
  bool blocking_wait = false;
  bool propagate_error = true;       // TORCH_MCCL_PROPAGATE_ERROR: a failure on one rank fails the group on all ranks
  bool desync_debug = false;         // TORCH_MCCL_DESYNC_DEBUG: the progress of each call is written to the store
  bool timing = false;               // TORCH_MCCL_ENABLE_TIMING
  bool nan_check = false;            // TORCH_MCCL_NAN_CHECK: operands are checked before they are sent
  bool high_priority = false;        // TORCH_MCCL_HIGH_PRIORITY
  // TORCH_MCCL_AVOID_RECORD_STREAMS=0: record_stream keeps operands alive, instead of the work
  bool record_streams = false;
  bool dump_on_failure = true;       // TORCH_MCCL_DUMP_ON_TIMEOUT
  bool monitoring = true;            // TORCH_MCCL_ENABLE_MONITORING: the process is terminated if a watchdog hangs
  std::chrono::seconds heartbeat_timeout{480};      // TORCH_MCCL_HEARTBEAT_TIMEOUT_SEC
  // TORCH_MCCL_COORD_CHECK_MILSEC: interval at which the store is polled
  std::chrono::milliseconds coordination{1000};
  std::chrono::milliseconds dump_timeout{15000};   // TORCH_MCCL_WAIT_TIMEOUT_DUMP_MILSEC

  // Reads the environment. Raises ValueError for an invalid value, with the name of the variable.
  static Settings from_environment();
};

} // namespace c10d::mccl
