// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Copies and fills. As on hardware, some of them return before they are done.
#pragma once

#include "engine/state.h"

namespace musa_emulator {

enum class Host { Waits, Continues };

MUSA_ENGINE CopyOperation linear_copy(void* dst, const void* src, size_t bytes, musaMemcpyKind kind);
// Returns musaErrorInvalidPitchValue if rows are longer than the pitch, musaErrorNotSupported for arrays.
MUSA_ENGINE musaError_t box_copy(const musaMemcpy3DParms& parameters, CopyOperation* copy);
// Checks pointers, bounds and direction.
MUSA_ENGINE musaError_t check_copy(const CopyOperation& copy);
MUSA_ENGINE musaError_t submit_copy(Stream& stream, CopyOperation&& copy, Host host);

MUSA_ENGINE musaError_t check_fill(const FillOperation& fill);
MUSA_ENGINE musaError_t submit_fill(Stream& stream, const FillOperation& fill, Host host);

} // namespace musa_emulator
