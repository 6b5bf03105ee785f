// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// What the entry points of all mathematical libraries share.
#pragma once

#include <utility>

#include "engine/api.h"

namespace musa_emulator::math {

// Whether a handle or a descriptor is one that a library made and did not destroy.
template <class Object>
bool alive(const Object* object) {
  return object != nullptr && object->magic == Object::kAlive;
}

// The frame of an entry point, with injected faults. `body()` returns a status of the library, whose success is 0; of an error
// of the runtime `status_of` makes such a status.
template <ApiName Name, unsigned Traits = kOrdinary, class StatusOf, class Body>
auto framed(StatusOf&& status_of, Body&& body) {
  decltype(body()) status{};
  const musaError_t error = api<Name, Traits>([&] {
    status = body();
    return musaSuccess; // a refused argument is no error of the runtime
  });
  return error == musaSuccess ? status : status_of(error);
}

} // namespace musa_emulator::math
