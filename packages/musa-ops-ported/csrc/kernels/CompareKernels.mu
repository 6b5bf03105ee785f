// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/native/BinaryOps.h>
#include <ATen/native/TensorCompare.h>
#include <limits>
#include <c10/util/complex.h>

#include "engines/dispatch.h"
#include "engines/pointwise.muh"

namespace musa_ops_ported {
namespace {

// Compares in the common dtype; the result is stored as bool, or as the dtype of the caller's output.
#define MUSA_COMPARISON(NAME, EXPRESSION, ...) \
  void NAME(at::TensorIteratorBase& iter) { \
    MUSA_DISPATCH(iter.common_dtype(), #NAME, (__VA_ARGS__), { \
      pointwise(iter, [] __host__ __device__(scalar_t x, scalar_t y) -> bool { return EXPRESSION; }); \
    }); \
  }

// One function for <, <=, > and >=, to limit the number of kernels: the arguments say which relations count as true.
// Bitwise operations instead of conditions, so that the loop is vectorized.
void compare(at::TensorIteratorBase& iter, bool less, bool equal, bool greater) {
  MUSA_DISPATCH(iter.common_dtype(), "compare", (MUSA_REAL, MUSA_UNSIGNED, at::kBool), {
    pointwise(iter, [less, equal, greater] __host__ __device__(scalar_t x, scalar_t y) -> bool {
      return (less & (x < y)) | (equal & (x == y)) | (greater & (x > y));
    });
  });
}
void lt(at::TensorIteratorBase& iter) { compare(iter, true, false, false); }
void le(at::TensorIteratorBase& iter) { compare(iter, true, true, false); }
void gt(at::TensorIteratorBase& iter) { compare(iter, false, false, true); }
void ge(at::TensorIteratorBase& iter) { compare(iter, false, true, true); }
MUSA_COMPARISON(eq, x == y, MUSA_ALL, MUSA_UNSIGNED)
MUSA_COMPARISON(ne, x != y, MUSA_ALL, MUSA_UNSIGNED)
MUSA_COMPARISON(logical_and, x != scalar_t(0) && y != scalar_t(0), MUSA_ALL)
MUSA_COMPARISON(logical_or, x != scalar_t(0) || y != scalar_t(0), MUSA_ALL)
MUSA_COMPARISON(logical_xor, (x != scalar_t(0)) != (y != scalar_t(0)), MUSA_ALL)

void isposinf(at::TensorIteratorBase& iter) {
  MUSA_DISPATCH(iter.input_dtype(), "isposinf", (MUSA_FLOATING), {
    pointwise(
        iter, [] __host__ __device__(scalar_t x) -> bool { return x == std::numeric_limits<scalar_t>::infinity(); });
  });
}
void isneginf(at::TensorIteratorBase& iter) {
  MUSA_DISPATCH(iter.input_dtype(), "isneginf", (MUSA_FLOATING), {
    pointwise(
        iter, [] __host__ __device__(scalar_t x) -> bool { return x == -std::numeric_limits<scalar_t>::infinity(); });
  });
}

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(lt_stub, &musa_ops_ported::lt)
REGISTER_PRIVATEUSE1_DISPATCH(le_stub, &musa_ops_ported::le)
REGISTER_PRIVATEUSE1_DISPATCH(gt_stub, &musa_ops_ported::gt)
REGISTER_PRIVATEUSE1_DISPATCH(ge_stub, &musa_ops_ported::ge)
REGISTER_PRIVATEUSE1_DISPATCH(eq_stub, &musa_ops_ported::eq)
REGISTER_PRIVATEUSE1_DISPATCH(ne_stub, &musa_ops_ported::ne)
REGISTER_PRIVATEUSE1_DISPATCH(isposinf_stub, &musa_ops_ported::isposinf)
REGISTER_PRIVATEUSE1_DISPATCH(isneginf_stub, &musa_ops_ported::isneginf)
REGISTER_PRIVATEUSE1_DISPATCH(logical_and_stub, [](at::TensorIterator& iter) { musa_ops_ported::logical_and(iter); })
REGISTER_PRIVATEUSE1_DISPATCH(logical_or_stub, [](at::TensorIterator& iter) { musa_ops_ported::logical_or(iter); })
REGISTER_PRIVATEUSE1_DISPATCH(logical_xor_stub, [](at::TensorIterator& iter) { musa_ops_ported::logical_xor(iter); })
} // namespace at::native
