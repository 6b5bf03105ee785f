// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Code that the entry points of all mathematical libraries share.
#pragma once

#include <utility>

#include "engine/api.h"

namespace musa_emulator::math {

// Whether `object` is a handle or descriptor that was created and not destroyed.
template <class Object>
bool alive(const Object* object) {
  return object != nullptr && object->magic == Object::kAlive;
}

// Frame of an entry point: injects faults. `body()` returns a status of the library, where 0 is success; `status_of`
// converts a runtime error to such a status.
template <ApiName Name, unsigned Traits = kOrdinary, class StatusOf, class Body>
auto framed(StatusOf&& status_of, Body&& body) {
  decltype(body()) status{};
  const musaError_t error = api<Name, Traits>([&] {
    status = body();
    return musaSuccess; // a rejected argument is not a runtime error
  });
  return error == musaSuccess ? status : status_of(error);
}

} // namespace musa_emulator::math
