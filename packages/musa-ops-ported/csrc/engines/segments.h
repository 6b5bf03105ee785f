// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Finds the positions of each value in a sorted list, so that a result gathers its inputs in a reproducible order.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace musa_ops_ported {

// Returns the first index of the sorted `values` with values[i] >= value (> value if `after`).
template <typename T>
C10_HOST_DEVICE int64_t first_place(const T* values, int64_t count, int64_t value, bool after = false) {
  int64_t low = 0, high = count;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const auto found = static_cast<int64_t>(values[middle]);
    if (found < value || (after && found == value)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

} // namespace musa_ops_ported
