// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Faults of the network and of peers, injected where a collective runs: MUSA_EMULATOR_MCCL_FAULT, rules divided by ';', each
// "CALL@N=ACTION" or "@N=ACTION": what happens to this process's N-th run of that call, or of any.
//
//   delay:MS  it begins that much later          drop  this rank never takes part
//   size      this rank has an element less      die   the process is killed
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

// Counts this run.
Fault next_fault(Kind kind);
// Why the environment's rules cannot be understood; empty where they can.
const std::string& problem_of_faults();

} // namespace musa_emulator::mccl
