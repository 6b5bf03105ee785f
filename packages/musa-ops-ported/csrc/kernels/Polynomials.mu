// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Orthogonal polynomials of x, of the degree that the other operand holds, in single and double precision.
#include <ATen/native/BinaryOps.h>
#include <ATen/native/Math.h>

#include "engines/dispatch.h"
#include "engines/pointwise.muh"

namespace musa_ops_ported {
namespace {

MUSA_BINARY(chebyshev_polynomial_t, ::chebyshev_polynomial_t_forward(x, y), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_BINARY(chebyshev_polynomial_u, ::chebyshev_polynomial_u_forward(x, y), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_BINARY(chebyshev_polynomial_v, ::chebyshev_polynomial_v_forward(x, y), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_BINARY(chebyshev_polynomial_w, ::chebyshev_polynomial_w_forward(x, y), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_BINARY(hermite_polynomial_h, ::hermite_polynomial_h_forward(x, y), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_BINARY(hermite_polynomial_he, ::hermite_polynomial_he_forward(x, y), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_BINARY(laguerre_polynomial_l, ::laguerre_polynomial_l_forward(x, y), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_BINARY(legendre_polynomial_p, ::legendre_polynomial_p_forward(x, y), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_BINARY(shifted_chebyshev_polynomial_t, ::shifted_chebyshev_polynomial_t_forward(x, y), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_BINARY(shifted_chebyshev_polynomial_u, ::shifted_chebyshev_polynomial_u_forward(x, y), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_BINARY(shifted_chebyshev_polynomial_v, ::shifted_chebyshev_polynomial_v_forward(x, y), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_BINARY(shifted_chebyshev_polynomial_w, ::shifted_chebyshev_polynomial_w_forward(x, y), AT_EXPAND(AT_FLOATING_TYPES))

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
