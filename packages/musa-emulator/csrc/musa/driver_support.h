// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Helpers for the files that define the driver's entry points.
#pragma once

#include <utility>

#include "engine/api.h"
#include "musa.h"

namespace musa_emulator {

// Driver and runtime use the same numeric error codes.
inline MUresult to_driver(musaError_t status) { return static_cast<MUresult>(status); }

template <ApiName Name, unsigned Traits = kOrdinary, class Body>
MUresult driver_api(Body&& body) {
  const musaError_t last = thread_state().last_error;
  const musaError_t status = api<Name, Traits>(std::forward<Body>(body));
  thread_state().last_error = last;
  return to_driver(status);
}

} // namespace musa_emulator
