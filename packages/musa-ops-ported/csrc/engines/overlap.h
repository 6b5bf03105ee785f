// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Overlap checks for kernels that read inputs while they write outputs.
#pragma once

#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>

namespace musa_ops_ported {

// Raises if elements of an output share memory.
inline void check_overlap_within(const at::Tensor& first, const at::Tensor& second) {
  at::assert_no_internal_overlap(first);
  at::assert_no_internal_overlap(second);
}

// Raises if elements of the output share memory, or if the output partly overlaps the input, because a thread would
// read elements that another thread has written. The output may be the input itself.
inline void check_overlap(const at::Tensor& out, const at::Tensor& in) {
  at::assert_no_internal_overlap(out);
  at::assert_no_partial_overlap(out, in);
}

} // namespace musa_ops_ported
