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

// Memory goes away only after all work that may use it: freeing waits, as on the hardware. A kernel that frees
// cannot wait for itself; it runs in the order of its stream.
inline void drain(Device& device) {
  if (may_wait() == musaSuccess) {
    wait_for_device(device); // a lost device is no obstacle to freeing
  }
}

} // namespace musa_emulator
