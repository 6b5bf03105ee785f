// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Orthogonal polynomials of x in single and double precision; the second operand is the degree.
#include <ATen/native/BinaryOps.h>
#include <ATen/native/Math.h>

#include <cmath>
#include <limits>

#include "engines/dispatch.h"
#include "engines/pointwise.muh"

#define MUSA_SINGLE_AND_DOUBLE AT_EXPAND(AT_FLOATING_TYPES)

namespace musa_ops_ported {
namespace {

// The recurrence of Hermite polynomials. Its terms cancel, so rounding must match torch's CPU kernel, whose compiler
// fuses the product and the difference. `slope`: polynomial of degree 1; `step`: 2 for H, 1 for He.
template <typename T>
__host__ __device__ C10_ALWAYS_INLINE T hermite_polynomial(T slope, T degree, int64_t step) {
  constexpr int64_t largest = ::getHermitianLimit<T>();
  const int64_t n = std::isfinite(degree) ? static_cast<int64_t>(degree) : -1; // a degree of -0.5 is 0
  if (n < 0) {
    return T(0);
  }
  if (n > largest) {
    return std::numeric_limits<T>::quiet_NaN();
  }
  T before(1), value = n == 0 ? T(1) : slope;
  for (int64_t k = 1; k < n; ++k) {
    const T next = std::fma(slope, value, -(static_cast<T>(k * step) * before));
    before = value;
    value = next;
  }
  return value;
}

MUSA_BINARY(chebyshev_polynomial_t, ::chebyshev_polynomial_t_forward(x, y), MUSA_SINGLE_AND_DOUBLE)
MUSA_BINARY(chebyshev_polynomial_u, ::chebyshev_polynomial_u_forward(x, y), MUSA_SINGLE_AND_DOUBLE)
MUSA_BINARY(chebyshev_polynomial_v, ::chebyshev_polynomial_v_forward(x, y), MUSA_SINGLE_AND_DOUBLE)
MUSA_BINARY(chebyshev_polynomial_w, ::chebyshev_polynomial_w_forward(x, y), MUSA_SINGLE_AND_DOUBLE)
MUSA_BINARY(hermite_polynomial_h, hermite_polynomial<op_t>(x + x, y, 2), MUSA_SINGLE_AND_DOUBLE)
MUSA_BINARY(hermite_polynomial_he, hermite_polynomial<op_t>(x, y, 1), MUSA_SINGLE_AND_DOUBLE)
MUSA_BINARY(laguerre_polynomial_l, ::laguerre_polynomial_l_forward(x, y), MUSA_SINGLE_AND_DOUBLE)
MUSA_BINARY(legendre_polynomial_p, ::legendre_polynomial_p_forward(x, y), MUSA_SINGLE_AND_DOUBLE)
MUSA_BINARY(shifted_chebyshev_polynomial_t, ::shifted_chebyshev_polynomial_t_forward(x, y), MUSA_SINGLE_AND_DOUBLE)
MUSA_BINARY(shifted_chebyshev_polynomial_u, ::shifted_chebyshev_polynomial_u_forward(x, y), MUSA_SINGLE_AND_DOUBLE)
MUSA_BINARY(shifted_chebyshev_polynomial_v, ::shifted_chebyshev_polynomial_v_forward(x, y), MUSA_SINGLE_AND_DOUBLE)
MUSA_BINARY(shifted_chebyshev_polynomial_w, ::shifted_chebyshev_polynomial_w_forward(x, y), MUSA_SINGLE_AND_DOUBLE)

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(chebyshev_polynomial_t_stub, &musa_ops_ported::chebyshev_polynomial_t)
REGISTER_PRIVATEUSE1_DISPATCH(chebyshev_polynomial_u_stub, &musa_ops_ported::chebyshev_polynomial_u)
REGISTER_PRIVATEUSE1_DISPATCH(chebyshev_polynomial_v_stub, &musa_ops_ported::chebyshev_polynomial_v)
REGISTER_PRIVATEUSE1_DISPATCH(chebyshev_polynomial_w_stub, &musa_ops_ported::chebyshev_polynomial_w)
REGISTER_PRIVATEUSE1_DISPATCH(hermite_polynomial_h_stub, &musa_ops_ported::hermite_polynomial_h)
REGISTER_PRIVATEUSE1_DISPATCH(hermite_polynomial_he_stub, &musa_ops_ported::hermite_polynomial_he)
REGISTER_PRIVATEUSE1_DISPATCH(laguerre_polynomial_l_stub, &musa_ops_ported::laguerre_polynomial_l)
REGISTER_PRIVATEUSE1_DISPATCH(legendre_polynomial_p_stub, &musa_ops_ported::legendre_polynomial_p)
REGISTER_PRIVATEUSE1_DISPATCH(shifted_chebyshev_polynomial_t_stub, &musa_ops_ported::shifted_chebyshev_polynomial_t)
REGISTER_PRIVATEUSE1_DISPATCH(shifted_chebyshev_polynomial_u_stub, &musa_ops_ported::shifted_chebyshev_polynomial_u)
REGISTER_PRIVATEUSE1_DISPATCH(shifted_chebyshev_polynomial_v_stub, &musa_ops_ported::shifted_chebyshev_polynomial_v)
REGISTER_PRIVATEUSE1_DISPATCH(shifted_chebyshev_polynomial_w_stub, &musa_ops_ported::shifted_chebyshev_polynomial_w)
} // namespace at::native
