// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/native/BatchLinearAlgebra.h>
#include <ATen/native/TensorIterator.h>

#include "engines/for_each.muh"

namespace musa_ops_ported {
namespace {

at::DimVector in_elements(at::IntArrayRef strides, int64_t element) {
  at::DimVector result;
  for (const int64_t stride : strides) {
    result.push_back(stride / element);
  }
  return result;
}

// The permutation that the row exchanges of an LU decomposition make, one matrix a thread. Operand 0 holds 0, 1, 2, ...
void unpack_pivots(at::TensorIterator& iter, const int64_t exchanges, const int64_t /*max_pivot*/) {
  auto* const permutations = static_cast<int64_t*>(iter.data_ptr(0));
  const auto* const pivots = static_cast<const int32_t*>(iter.data_ptr(1));
  for_each_offset(
      iter.shape(),
      [=] __device__(int64_t, const auto& at) {
        int64_t* const permutation = permutations + at[0];
        for (int64_t i = 0; i < exchanges; ++i) {
          const int64_t with = pivots[at[1] + i] - 1; // LAPACK counts from 1
          const int64_t row = permutation[i];
          permutation[i] = permutation[with];
          permutation[with] = row;
        }
      },
      in_elements(iter.strides(0), sizeof(int64_t)), in_elements(iter.strides(1), sizeof(int32_t)));
}

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(unpack_pivots_stub, &musa_ops_ported::unpack_pivots)
} // namespace at::native
