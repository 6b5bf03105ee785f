// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Arithmetic for sizes and offsets that callers pass. A result that does not fit becomes SIZE_MAX, which no memory has, so that
// the check of the memory's bounds rejects it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace musa_emulator {

// No process has addresses above this.
inline constexpr uintptr_t kAddressLimit = uintptr_t{1} << 56;

inline size_t checked_sum(size_t a, size_t b) {
  size_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? SIZE_MAX : sum;
}

inline size_t checked_product(size_t a, size_t b) {
  size_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

// From the first to the last byte of `depth` slices of `height` rows of `width` bytes. The counts are at least 1.
inline size_t box_span(size_t depth, size_t slice, size_t height, size_t pitch, size_t width) {
  return checked_sum(checked_product(depth - 1, slice), checked_sum(checked_product(height - 1, pitch), width));
}

inline size_t box_bytes(size_t width, size_t height, size_t depth) {
  return checked_product(checked_product(width, height), depth);
}

} // namespace musa_emulator
