// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Names and descriptions of error codes.
#pragma once

#include "driver_types.h"
#include "engine/export.h"

namespace musa_emulator {

MUSA_ENGINE const char* error_name(musaError_t error);
MUSA_ENGINE const char* error_string(musaError_t error);
bool error_from_name(const char* name, musaError_t* error);

} // namespace musa_emulator
