// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Sums of many terms.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/add_cpu_dispatch.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <cstdint>

#include <mudnn_backend/device.h>

namespace musa_emulator::dnn {

// Calls step(sum, n, is_first) for each of `count` terms. It adds the term to `sum`, or assigns it if it is the first of a
// group of terms. The sums of the groups are added to the result: rounding errors grow with the length of a chain of additions.
template <class Step>
void sum_in_groups(at::Tensor& result, int64_t count, int64_t group, Step&& step) {
  at::Tensor partial = count > group ? at::empty_like(result) : at::Tensor();
  for (int64_t first = 0; first < count; first += group) {
    at::Tensor& sum = first == 0 ? result : partial;
    for (int64_t n = first; n < std::min(count, first + group); ++n) {
      step(sum, n, n == first);
    }
    if (first > 0) {
      ops::add_out(result, result, partial, 1);
    }
  }
}

} // namespace musa_emulator::dnn
