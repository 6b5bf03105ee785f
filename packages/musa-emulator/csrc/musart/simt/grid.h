// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// All blocks of a launch.
#pragma once

#include "engine/kernel.h"

namespace musa_emulator::simt {

// Spreads the blocks over the cores and waits for the last; those of a cooperative launch take turns on this thread.
// What goes wrong in one of them is said on stderr.
musaError_t run(KernelLaunch& launch);

} // namespace musa_emulator::simt
