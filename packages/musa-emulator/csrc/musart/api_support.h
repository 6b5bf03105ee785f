// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Helpers for the files that define entry points.
#pragma once

#include "engine/api.h"
#include "engine/device.h"
#include "engine/stream.h"
#include "musa_runtime.h"

namespace musa_emulator {

// Calls `body(stream)` with the stream of the handle.
template <class Body>
musaError_t with_stream(musaStream_t handle, Body&& body) {
  Stream* stream = resolve_stream(handle);
  return stream != nullptr ? body(*stream) : musaErrorInvalidResourceHandle;
}

// Freeing memory first waits for all work that may use it, as on a device. A kernel that frees memory cannot wait for
// itself; it runs in stream order.
inline void drain(Device& device) {
  if (may_wait() == musaSuccess) {
    wait_for_device(device); // memory of a lost device can be freed too
  }
}

} // namespace musa_emulator
