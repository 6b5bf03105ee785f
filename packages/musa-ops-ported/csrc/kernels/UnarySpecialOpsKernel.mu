// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/native/UnaryOps.h>
#include <ATen/native/musa/Math.muh>

#include <limits>

#include "engines/dispatch.h"
#include "engines/pointwise.muh"
#include "kernels/digamma.h"

namespace musa_ops_ported {

MUSA_UNARY(digamma, at::native::calc_digamma(x), MUSA_FLOATING)
MUSA_UNARY(trigamma, at::native::calc_trigamma(x), MUSA_FLOATING)

namespace {

// exp(-|x|) times the modified Bessel function of order 0, by the expansions of Cephes' i0e.
template <typename T>
__host__ __device__ T scaled_i0(T x) {
  x = std::abs(x);
  if (x <= T(8)) {
    const auto [coefficients, count] = at::native::chebyshev_coefficients_i0e_A<T>();
    return at::native::chbevl(x / T(2) - T(2), coefficients, count);
  }
  const auto [coefficients, count] = at::native::chebyshev_coefficients_i0e_B<T>();
  return at::native::chbevl(T(32) / x - T(2), coefficients, count) / std::sqrt(x);
}

MUSA_UNARY(erf, std::erf(x), MUSA_FLOATING)
MUSA_UNARY(erfc, std::erfc(x), MUSA_FLOATING)
MUSA_UNARY(erfinv, ::erfinv(x), MUSA_FLOATING)
MUSA_UNARY(lgamma, std::lgamma(x), MUSA_FLOATING)
MUSA_UNARY(i0, at::native::calc_i0(x), MUSA_FLOATING)
MUSA_UNARY(i0e, scaled_i0(x), MUSA_FLOATING)
MUSA_UNARY(i1, at::native::calc_i1(x), MUSA_FLOATING)
MUSA_UNARY(i1e, at::native::calc_i1e(x), MUSA_FLOATING)

template <typename T>
__host__ __device__ T sine_over(T x) {
  if (x == T(0)) {
    return T(1);
  }
  const T angle = T(3.14159265358979323846) * x;
  return std::sin(angle) / angle;
}
MUSA_UNARY(sinc, sine_over(x), MUSA_FLOATING, AT_EXPAND(AT_COMPLEX_TYPES))

// -x log x, and its limit at 0.
template <typename T>
__host__ __device__ T entropy(T x) {
  return x != x || x > 0 ? -x * std::log(x) : x == 0 ? T(0) : -std::numeric_limits<T>::infinity();
}
MUSA_UNARY(entr, entropy(x), MUSA_FLOATING)

void kaiser_window(at::TensorIteratorBase& iter, int64_t length, double beta) {
  MUSA_DISPATCH(iter.dtype(), "kaiser_window", (MUSA_FLOATING), {
    const op_t inverse = static_cast<op_t>(2.0 / static_cast<double>(length - 1));
    const op_t factor = static_cast<op_t>(beta);
    const op_t scale = static_cast<op_t>(1.0 / at::native::calc_i0(beta));
    pointwise(iter, [=] __host__ __device__(scalar_t x) -> scalar_t {
      const auto y = at::opmath_type<scalar_t>(x) * inverse - 1;
      const auto square = 1 - y * y;
      return static_cast<scalar_t>(at::native::calc_i0(factor * std::sqrt(square < 0 ? 0 : square)) * scale);
    });
  });
}

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(erf_stub, &musa_ops_ported::erf)
REGISTER_PRIVATEUSE1_DISPATCH(erfc_stub, &musa_ops_ported::erfc)
REGISTER_PRIVATEUSE1_DISPATCH(erfinv_stub, &musa_ops_ported::erfinv)
REGISTER_PRIVATEUSE1_DISPATCH(lgamma_stub, &musa_ops_ported::lgamma)
REGISTER_PRIVATEUSE1_DISPATCH(digamma_stub, &musa_ops_ported::digamma)
REGISTER_PRIVATEUSE1_DISPATCH(trigamma_stub, &musa_ops_ported::trigamma)
REGISTER_PRIVATEUSE1_DISPATCH(i0_stub, &musa_ops_ported::i0)
REGISTER_PRIVATEUSE1_DISPATCH(special_i0e_stub, &musa_ops_ported::i0e)
REGISTER_PRIVATEUSE1_DISPATCH(special_i1_stub, &musa_ops_ported::i1)
REGISTER_PRIVATEUSE1_DISPATCH(special_i1e_stub, &musa_ops_ported::i1e)
REGISTER_PRIVATEUSE1_DISPATCH(sinc_stub, &musa_ops_ported::sinc)
REGISTER_PRIVATEUSE1_DISPATCH(special_entr_stub, &musa_ops_ported::entr)
REGISTER_PRIVATEUSE1_DISPATCH(kaiser_window_stub, &musa_ops_ported::kaiser_window)
} // namespace at::native
