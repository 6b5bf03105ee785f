// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Injected failures of API calls.
#pragma once

#include <cstdint>
#include <string>

#include "engine/api.h"

namespace musa_emulator {

// Makes the n-th call from now of `entry`, or of any entry point if `entry` is null, fail with `code`.
MUSA_ENGINE void add_fault(const ApiEntry* entry, uint64_t n, musaError_t code);
MUSA_ENGINE void clear_faults();
MUSA_ENGINE bool fault_pending();
// Counts this call. Returns the code that it must fail with, or musaSuccess.
musaError_t next_fault(const ApiEntry& entry);
// Adds the rules of "api@n=musaErrorName;...". Returns the error in it, or an empty string.
std::string parse_faults(const std::string& specification);

} // namespace musa_emulator
