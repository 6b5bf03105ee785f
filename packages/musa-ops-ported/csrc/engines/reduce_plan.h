// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// How reduce.muh spreads a reduction over blocks and threads.
#pragma once

#include <ATen/native/TensorIterator.h>

#include <cstdint>

#include "engines/offsets.h"
#include "engines/vector.h"

namespace musa_ops_ported {

inline constexpr int kReduceThreads = 128;

struct ReducePlan {
  int64_t outputs = 0; // how many results
  int64_t count = 0; // elements of each
  const char* in = nullptr;
  char* out[2] = {};
  Offsets<3> output; // in bytes, of out[0], out[1] and in, by the number of the result
  Offsets<1> element; // in bytes, of in, by the number of the element

  int lanes = 1; // threads that share a result
  int rows = kReduceThreads; // threads of a block side by side in results; lanes * rows is the block
  bool lanes_first = true; // neighbouring threads are lanes, else neighbours in results
  // A thread loads kVector neighbours at once: elements of one result, or the same element of so many results.
  bool vector_of_elements = false;
  bool vector_of_outputs = false;
  int64_t splits = 1; // blocks that share a result; their results are reduced by a second kernel
  int64_t chunk = 0; // elements of such a block
  int64_t row_blocks = 1;
  // Lanes do not combine their results: each takes `share` neighbouring elements of the chunk, and the second kernel the rest.
  bool apart = false;
  int64_t share = 0;

  // How many results of the first kernel become one.
  int64_t parts() const { return apart ? splits * lanes : splits; }
};

// Of an iterator made for a reduction: outputs first, one input.
ReducePlan plan_reduce(const at::TensorIteratorBase& iter);
// The second kernel's, over parts() partial results for each of `outputs`.
ReducePlan plan_partial(const ReducePlan& first, const void* partial, size_t bytes);

} // namespace musa_ops_ported
