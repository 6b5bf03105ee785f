// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAMacros.h>

#include <string>

namespace musa_runtime {

// Loads what profiling the device needs. Empty where that succeeds, else what is missing, why, and the cure.
C10_MUSA_API std::string profiler_problem();

} // namespace musa_runtime
