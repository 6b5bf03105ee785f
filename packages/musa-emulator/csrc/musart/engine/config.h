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
// In what order the threads of a block run, where a GPU promises none.
enum class ThreadOrder { Forward, Reverse, Random };

struct Config {
  Mode mode = Mode::Inline;
  int arch = 31;                // mp_<arch>
  size_t memory_limit = 0;      // bytes per device
  bool strict = false;          // device memory is inaccessible to host code
  bool poison = false;          // fresh device memory is filled with 0xCD
  bool virtual_memory = true;   // the devices have virtual memory management
  bool launch_blocking = false; // every kernel launch waits for its stream
  ThreadOrder thread_order = ThreadOrder::Forward;
  uint64_t thread_order_seed = 0;
  size_t threads = 1;           // that run blocks of a kernel at the same time
  std::vector<int> visible;     // physical ordinal of each visible device
  int physical_devices = 0;
  std::string faults;           // MUSA_EMULATOR_FAIL, parsed by fault.cpp
  // Set when a value was refused: the code that device calls return, and the explanation printed once.
  musaError_t error = musaSuccess;
  std::string problem;
};

Config read_config();
MUSA_ENGINE const char* mode_name(Mode mode);

} // namespace musa_emulator
