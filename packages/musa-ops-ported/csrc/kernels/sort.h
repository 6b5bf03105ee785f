// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Orders of elements, for all operators that begin with one. Lines run along the last dimension. NaNs are the largest.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace musa_ops_ported {

// The places of the first `keep` elements of each sorted line: contiguous, of int64. Stable. self has at least a
// dimension.
at::Tensor sorted_places(const at::Tensor& self, bool descending, int64_t keep);

// Unsigned numbers in the elements' order, as bits in a contiguous tensor of int32 (elements of up to 4 bytes) or
// int64.
// Equal elements have equal keys, and so have NaNs: the largest key, which no other floating point number has.
// `flip`: bits to flip in each key.
at::Tensor order_keys(const at::Tensor& self, uint64_t flip = 0);

} // namespace musa_ops_ported
