// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Memory faults: an explanation for host code that touches device memory, an error for kernels.
#pragma once

#include "engine/operation.h"

namespace musa_emulator {

// Once per process; chains to the handler that was there.
void install_fault_handler();
// Runs the launch; an invalid access or an exception inside it becomes the error that loses the device.
musaError_t run_guarded(Launch& launch);

} // namespace musa_emulator
