// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Injects network and peer faults where a collective runs. MUSA_EMULATOR_MCCL_FAULT holds rules separated by ';',
// each "CALL@N=ACTION" or "@N=ACTION", for the N-th run of that call, or of any call, in this process.
//
//   delay:MS  starts MS later                    drop  this rank does not take part
//   size      this rank has one element fewer    die   the process is killed
#pragma once

#include <chrono>
#include <string>

#include "signature.h"

namespace musa_emulator::mccl {

struct Fault {
  enum class Action { None, Delay, Drop, Size, Die };
  Action action = Action::None;
  std::chrono::milliseconds delay{0};
};

// Counts this run and returns its fault.
Fault next_fault(Kind kind);
// Returns the parse error of the environment variable, or an empty string.
const std::string& problem_of_faults();

} // namespace musa_emulator::mccl
