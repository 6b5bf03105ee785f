// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Shared by the files that define entry points.
#pragma once

#include "engine/api.h"
#include "engine/device.h"
#include "engine/stream.h"
#include "musa_runtime.h"

namespace musa_emulator {

// Calls `body(stream)` with the stream behind the handle.
template <class Body>
musaError_t with_stream(musaStream_t handle, Body&& body) {
  Stream* stream = resolve_stream(handle);
  return stream != nullptr ? body(*stream) : musaErrorInvalidResourceHandle;
}

} // namespace musa_emulator
