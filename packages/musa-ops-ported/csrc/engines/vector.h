// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/util/Exception.h>

#include <cstdint>

namespace musa_ops_ported {

inline constexpr int kVector = 4; // elements that a thread loads at once

template <typename T>
struct alignas(sizeof(T) * kVector) Vector {
  T values[kVector];
};

// An element of which only the size matters: what is copied or chosen is never computed with.
template <int size>
struct alignas(size) Opaque {
  char bytes[size];
};

// Calls f with the Opaque of this size.
template <typename F>
void by_size(int64_t size, const F& f) {
  switch (size) {
    case 1: f(Opaque<1>()); break;
    case 2: f(Opaque<2>()); break;
    case 4: f(Opaque<4>()); break;
    case 8: f(Opaque<8>()); break;
    case 16: f(Opaque<16>()); break;
    default: TORCH_CHECK(false, "no element has ", size, " bytes");
  }
}

} // namespace musa_ops_ported
