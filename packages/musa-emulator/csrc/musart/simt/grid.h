// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// All blocks of a launch.
#pragma once

#include "engine/kernel.h"

namespace musa_emulator::simt {

// Distributes the blocks over the cores and waits for all of them; the blocks of a cooperative launch run by turns on
// this thread. Errors in a block are printed on stderr.
musaError_t run(KernelLaunch& launch);

} // namespace musa_emulator::simt
