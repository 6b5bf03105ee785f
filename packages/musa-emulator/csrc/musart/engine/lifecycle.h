// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The engine's beginning and end: first use, fork, exit, reset.
#pragma once

#include "engine/export.h"
#include "driver_types.h"

namespace musa_emulator {

// At the first API call, once.
void initialize();
// The same for functions outside the API frame. False in a forked child and while the process ends.
MUSA_ENGINE bool ensure_initialized();
MUSA_ENGINE musaError_t reset();
MUSA_ENGINE const char* configuration_error();

} // namespace musa_emulator
