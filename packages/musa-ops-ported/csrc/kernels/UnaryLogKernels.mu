// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/native/UnaryOps.h>
#include <c10/util/complex.h>

#include "engines/dispatch.h"
#include "engines/pointwise.muh"

namespace musa_ops_ported {
namespace {

MUSA_UNARY(log, std::log(x), MUSA_FLOATING_AND_COMPLEX)
MUSA_UNARY(log2, std::log2(x), MUSA_FLOATING_AND_COMPLEX)
MUSA_UNARY(log10, std::log10(x), MUSA_FLOATING_AND_COMPLEX)
MUSA_UNARY(log1p, std::log1p(x), MUSA_FLOATING, AT_EXPAND(AT_COMPLEX_TYPES))
MUSA_UNARY(exp, std::exp(x), MUSA_FLOATING_AND_COMPLEX)
MUSA_UNARY(expm1, std::expm1(x), MUSA_FLOATING, AT_EXPAND(AT_COMPLEX_TYPES))

// exp2; complex x via exp(x log 2).
template <typename T>
__host__ __device__ T power_of_two(T x) {
  return std::exp2(x);
}
template <typename T>
__host__ __device__ c10::complex<T> power_of_two(c10::complex<T> x) {
  return std::exp(x * static_cast<T>(0.693147180559945309417232121458));
}
MUSA_UNARY(exp2, power_of_two(x), MUSA_FLOATING_AND_COMPLEX)

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(log_stub, &musa_ops_ported::log)
REGISTER_PRIVATEUSE1_DISPATCH(log2_stub, &musa_ops_ported::log2)
REGISTER_PRIVATEUSE1_DISPATCH(log10_stub, &musa_ops_ported::log10)
REGISTER_PRIVATEUSE1_DISPATCH(log1p_stub, &musa_ops_ported::log1p)
REGISTER_PRIVATEUSE1_DISPATCH(exp_stub, &musa_ops_ported::exp)
REGISTER_PRIVATEUSE1_DISPATCH(exp2_stub, &musa_ops_ported::exp2)
REGISTER_PRIVATEUSE1_DISPATCH(expm1_stub, &musa_ops_ported::expm1)
} // namespace at::native
