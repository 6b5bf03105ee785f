// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAMacros.h>

#include <string>

namespace musa_runtime {

// Loads the libraries for profiling the device. Returns an empty string, or the missing part, its cause and the fix.
C10_MUSA_API std::string profiler_problem();

} // namespace musa_runtime
