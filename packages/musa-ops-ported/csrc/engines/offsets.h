// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Converts a linear element index to offsets in several tensors of the same shape.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <array>
#include <cstdint>

#include "engines/grid.h"

namespace musa_ops_ported {

// Sizes and strides are ordered innermost dimension first.
template <int operands>
struct Offsets {
  static constexpr int kDims = kMaxDims;
  int dims = 0;
  int64_t sizes[kDims] = {};
  int64_t strides[operands][kDims] = {};

  // Divides in 32 bits if the index allows it; the outermost dimension needs no division.
  template <typename Use>
  C10_HOST_DEVICE void each(int64_t index, const Use& use) const {
    for (int dim = 0; dim + 1 < dims; ++dim) {
      const int64_t quotient =
          (index >> 31) == 0 ? static_cast<uint32_t>(index) / static_cast<uint32_t>(sizes[dim]) : index / sizes[dim];
      use(dim, index - quotient * sizes[dim]);
      index = quotient;
    }
    if (dims > 0) {
      use(dims - 1, index);
    }
  }

  C10_HOST_DEVICE int64_t of(int operand, int64_t index) const {
    int64_t offset = 0;
    each(index, [&](int dim, int64_t at) { offset += at * strides[operand][dim]; });
    return offset;
  }

  C10_HOST_DEVICE std::array<int64_t, operands> all(int64_t index) const {
    std::array<int64_t, operands> offsets{};
    each(index, [&](int dim, int64_t at) {
      for (int i = 0; i < operands; ++i) {
        offsets[i] += at * strides[i][dim];
      }
    });
    return offsets;
  }
};

// Builds Offsets from a shape and the operands' strides, both outermost dimension first as in torch. Adjacent
// dimensions that are contiguous in all operands are merged.
template <int operands>
Offsets<operands> offsets_of(at::IntArrayRef shape, const std::array<at::IntArrayRef, operands>& strides) {
  Offsets<operands> result;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 1) {
      continue;
    }
    bool merged = result.dims > 0;
    for (int i = 0; i < operands && merged; ++i) {
      merged = strides[i][d] == result.strides[i][result.dims - 1] * result.sizes[result.dims - 1];
    }
    if (merged) {
      result.sizes[result.dims - 1] *= shape[d];
      continue;
    }
    TORCH_CHECK(
        result.dims < Offsets<operands>::kDims, "a tensor of more than ", Offsets<operands>::kDims,
        " dimensions that cannot be merged is not supported.\nFix: call contiguous() on it first");
    result.sizes[result.dims] = shape[d];
    for (int i = 0; i < operands; ++i) {
      result.strides[i][result.dims] = strides[i][d];
    }
    ++result.dims;
  }
  return result;
}

} // namespace musa_ops_ported
