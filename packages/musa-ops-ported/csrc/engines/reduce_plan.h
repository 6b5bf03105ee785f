// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The distribution of a reduction over blocks and threads, for reduce.muh.
#pragma once

#include <ATen/native/TensorIterator.h>

#include <cstdint>

#include "engines/offsets.h"
#include "engines/vector.h"

namespace musa_ops_ported {

inline constexpr int kReduceThreads = 128;

struct ReducePlan {
  int64_t outputs = 0; // number of results
  int64_t count = 0; // elements per result
  const char* in = nullptr;
  char* out[2] = {};
  Offsets<3> output; // byte offsets of out[0], out[1] and in, by result index
  Offsets<1> element; // byte offsets in `in`, by index of the reduced element

  int lanes = 1; // threads that share a result
  int rows = kReduceThreads; // threads of a block along results; lanes * rows is the block size
  bool lanes_first = true; // adjacent threads are lanes, otherwise adjacent results
  // A thread loads kVector adjacent elements: of one result, or the same element of kVector results.
  bool vector_of_elements = false;
  bool vector_of_outputs = false;
  int64_t splits = 1; // blocks per result; a second kernel reduces their partial results
  int64_t chunk = 0; // elements per block
  int64_t row_blocks = 1;
};

// Plans a reduction for an iterator whose operands are the outputs, then one input.
ReducePlan plan_reduce(const at::TensorIteratorBase& iter);
// Plans the second kernel, over the partial results of all splits, `bytes` each.
ReducePlan plan_partial(const ReducePlan& first, const void* partial, size_t bytes);

} // namespace musa_ops_ported
