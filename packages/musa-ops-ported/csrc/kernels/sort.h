// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Sorted orders for all operators that sort. Lines run along the last dimension. NaN is the largest value.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace musa_ops_ported {

// Returns the places of the first `keep` elements of each sorted line, contiguous int64. Stable. self must have at
// least one dimension.
at::Tensor sorted_places(const at::Tensor& self, bool descending, int64_t keep);

// Returns unsigned keys in the order of the elements, as the bits of a contiguous tensor of int32 (elements of up to
// 4 bytes) or int64. Equal elements have equal keys; all NaNs have the largest key, which no other number has.
// `flip`: bits to invert in each key.
at::Tensor order_keys(const at::Tensor& self, uint64_t flip = 0);

} // namespace musa_ops_ported
