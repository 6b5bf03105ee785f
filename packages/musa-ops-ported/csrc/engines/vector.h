// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/util/Exception.h>

#include <cstdint>

namespace musa_ops_ported {

inline constexpr int kVector = 4; // elements per vector load

template <typename T, int count = kVector>
struct alignas(sizeof(T) * count) Vector {
  T values[count];
};

// An element of a given size, for kernels that copy or select elements without computing.
template <int size>
struct alignas(size) Opaque {
  char bytes[size];
};

} // namespace musa_ops_ported

// Runs the block with Bytes, the Opaque type of this size: MUSA_BY_SIZE(size, { ... }). A macro, because nvcc does
// not allow kernel lambdas inside generic lambdas.
#define MUSA_SIZE_CASE(SIZE, ...) \
  case SIZE: { \
    using Bytes [[maybe_unused]] = ::musa_ops_ported::Opaque<SIZE>; \
    [&] __VA_ARGS__(); \
    break; \
  }
#define MUSA_BY_SIZE(SIZE, ...) \
  [&](const int64_t size_of_bytes) { \
    switch (size_of_bytes) { \
      MUSA_SIZE_CASE(1, __VA_ARGS__) \
      MUSA_SIZE_CASE(2, __VA_ARGS__) \
      MUSA_SIZE_CASE(4, __VA_ARGS__) \
      MUSA_SIZE_CASE(8, __VA_ARGS__) \
      MUSA_SIZE_CASE(16, __VA_ARGS__) \
      default: TORCH_CHECK(false, "unsupported element size: ", size_of_bytes, " bytes"); \
    } \
  }(SIZE)
