// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// How reduce.muh spreads a reduction over blocks and threads.
#pragma once

#include <ATen/native/TensorIterator.h>

#include <cstdint>

#include "engines/vector.h"

namespace musa_ops_ported {

inline constexpr int kReduceThreads = 128;
inline constexpr int kReduceDims = 16;

// From a number to the offsets that it stands for, in some operands.
template <int operands>
struct Offsets {
  int dims = 0;
  int64_t sizes[kReduceDims] = {};
  int64_t strides[operands][kReduceDims] = {}; // in bytes

  // The offset of the only dimension that there usually is comes without a division.
  C10_HOST_DEVICE int64_t of(int operand, int64_t index) const {
    int64_t offset = 0;
    for (int dim = 0; dim + 1 < dims; ++dim) {
      const int64_t quotient = (index >> 31) == 0 ? static_cast<uint32_t>(index) / static_cast<uint32_t>(sizes[dim])
                                                  : index / sizes[dim];
      offset += (index - quotient * sizes[dim]) * strides[operand][dim];
      index = quotient;
    }
    return dims == 0 ? 0 : offset + index * strides[operand][dims - 1];
  }
};

struct ReducePlan {
  int64_t outputs = 0; // how many results
  int64_t count = 0; // elements of each
  const char* in = nullptr;
  char* out[2] = {};
  Offsets<3> output; // of out[0], out[1] and in, by the number of the result
  Offsets<1> element; // of in, by the number of the element

  int lanes = 1; // threads that share a result
  int rows = kReduceThreads; // threads of a block side by side in results; lanes * rows is the block
  bool lanes_first = true; // neighbouring threads are lanes, else neighbours in results
  // A thread loads kVector neighbours at once: elements of one result, or the same element of so many results.
  bool vector_of_elements = false;
  bool vector_of_outputs = false;
  int64_t splits = 1; // blocks that share a result; their results are reduced by a second kernel
  int64_t chunk = 0; // elements of such a block
  int64_t row_blocks = 1;
};

// Of an iterator made for a reduction: outputs first, one input.
ReducePlan plan_reduce(const at::TensorIteratorBase& iter);
// The second kernel's, over `splits` partial results for each of `outputs`.
ReducePlan plan_partial(const ReducePlan& first, const void* partial, size_t bytes);

} // namespace musa_ops_ported
