// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/native/TensorCompare.h>
#include <c10/core/Scalar.h>

#include "engines/dispatch.h"
#include "engines/pointwise.muh"

namespace musa_ops_ported {
namespace {

// ---- where and clamp

// Selects bytes, so that all dtypes of one size share a kernel.
template <typename Bytes>
void where_of(at::TensorIterator& iter) {
  pointwise(iter, [] __host__ __device__(bool condition, Bytes x, Bytes y) -> Bytes { return condition ? x : y; });
}
void where(at::TensorIterator& iter) {
  MUSA_BY_SIZE(iter.element_size(0), { where_of<Bytes>(iter); });
}

// NaN propagates from each operand. Bitwise operations instead of branches, so that the loop is vectorized.
template <typename T>
__host__ __device__ T limited(T x, T low, T high) {
  const T raised = int(x < low) | int(low != low) ? low : x;
  return int(high < raised) | int(high != high) ? high : raised;
}

void clamp(at::TensorIteratorBase& iter) {
  MUSA_DISPATCH(iter.common_dtype(), "clamp", (MUSA_REAL), {
    pointwise(iter, [] __host__ __device__(scalar_t x, scalar_t low, scalar_t high) -> scalar_t {
      return limited(x, low, high);
    });
  });
}
void clamp_scalar(at::TensorIteratorBase& iter, const at::Scalar& min, const at::Scalar& max) {
  MUSA_DISPATCH(iter.common_dtype(), "clamp", (MUSA_REAL), {
    const auto low = min.to<scalar_t>(), high = max.to<scalar_t>();
    if (low != low || high != high) {
      const scalar_t nan = low != low ? low : high;
      pointwise(iter, [nan] __host__ __device__(scalar_t) -> scalar_t { return nan; });
      return;
    }
    pointwise(iter, [low, high] __host__ __device__(scalar_t x) -> scalar_t {
      const scalar_t raised = x < low ? low : x; // x if it is NaN
      return high < raised ? high : raised;
    });
  });
}
void clamp_min_scalar(at::TensorIteratorBase& iter, at::Scalar min) {
  MUSA_DISPATCH(iter.common_dtype(), "clamp_min", (MUSA_REAL), {
    const auto low = min.to<scalar_t>();
    pointwise(iter, [low] __host__ __device__(scalar_t x) -> scalar_t {
      return x == x && (low != low || x < low) ? low : x;
    });
  });
}
void clamp_max_scalar(at::TensorIteratorBase& iter, at::Scalar max) {
  MUSA_DISPATCH(iter.common_dtype(), "clamp_max", (MUSA_REAL), {
    const auto high = max.to<scalar_t>();
    pointwise(iter, [high] __host__ __device__(scalar_t x) -> scalar_t {
      return x == x && (high != high || x > high) ? high : x;
    });
  });
}

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(where_kernel, &musa_ops_ported::where)
REGISTER_PRIVATEUSE1_DISPATCH(clamp_stub, &musa_ops_ported::clamp)
REGISTER_PRIVATEUSE1_DISPATCH(clamp_scalar_stub, &musa_ops_ported::clamp_scalar)
REGISTER_PRIVATEUSE1_DISPATCH(clamp_min_scalar_stub, &musa_ops_ported::clamp_min_scalar)
REGISTER_PRIVATEUSE1_DISPATCH(clamp_max_scalar_stub, &musa_ops_ported::clamp_max_scalar)
} // namespace at::native
