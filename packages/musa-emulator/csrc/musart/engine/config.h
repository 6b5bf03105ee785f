// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Settings read from the environment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "driver_types.h"
#include "engine/export.h"

namespace musa_emulator {

enum class Mode { Inline, Async, Lazy };
// The order in which the threads of a block run. A GPU guarantees none.
enum class ThreadOrder { Forward, Reverse, Random };

inline constexpr int kMaxDevices = 64;

struct Config {
  Mode mode = Mode::Inline;
  int arch = 31;                // mp_<arch>
  size_t memory_limit = 0;      // bytes per device
  bool strict = false;          // device memory is inaccessible to host code
  bool integrated = true;       // the devices share the host's physical memory
  bool poison = false;          // new device memory is filled with 0xCD
  bool float64 = true;          // the devices compute with float64
  bool virtual_memory = true;   // whether the devices support virtual memory management
  bool launch_blocking = false; // every kernel launch waits for its stream
  ThreadOrder thread_order = ThreadOrder::Forward;
  uint64_t thread_order_seed = 0;
  size_t threads = 1;           // number of threads that run blocks of a kernel concurrently
  std::vector<int> visible;     // physical ordinal of each visible device
  int physical_devices = 0;
  std::string faults;           // MUSA_EMULATOR_FAIL, parsed by fault.cpp
  std::string machine;          // processes of the same machine share its devices
  // Set if a setting is invalid: the error that device calls return, and its explanation, which is printed once.
  musaError_t error = musaSuccess;
  std::string problem;
};

MUSA_ENGINE Config read_config();
MUSA_ENGINE const char* mode_name(Mode mode);

} // namespace musa_emulator
