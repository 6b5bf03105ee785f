// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The engine's lifecycle: first use, fork, exit, reset.
#pragma once

#include "engine/state.h"

namespace musa_emulator {

// Called once, at the first API call.
void initialize();
// As initialize(), for functions without the API frame. Returns false in a forked child and during process exit.
MUSA_ENGINE bool ensure_initialized();
MUSA_ENGINE musaError_t reset();
MUSA_ENGINE const char* configuration_error();
// Frees the device's resources, and clears a sticky error.
MUSA_ENGINE musaError_t reset_device(Device& device);

} // namespace musa_emulator
