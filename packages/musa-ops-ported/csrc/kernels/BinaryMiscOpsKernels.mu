// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/native/BinaryOps.h>
#include <ATen/native/Math.h>
#include <c10/util/complex.h>

#include <cmath>
#include <limits>

#include "engines/dispatch.h"
#include "engines/pointwise.muh"
#include "kernels/incomplete_gamma.muh"
#include "kernels/numbers.muh"

namespace musa_ops_ported {
namespace {

// ---- bitwise operations

MUSA_BINARY(bitwise_and, static_cast<scalar_t>(first& second), MUSA_INTEGRAL, at::kBool)
MUSA_BINARY(bitwise_or, static_cast<scalar_t>(first | second), MUSA_INTEGRAL, at::kBool)
MUSA_BINARY(bitwise_xor, static_cast<scalar_t>(first ^ second), MUSA_INTEGRAL, at::kBool)

// A shift by more bits than the type has returns the mathematical result.
template <typename T>
__host__ __device__ T shifted_left(T x, T by) {
  constexpr T bits = sizeof(T) * 8;
  return by < 0 || by >= bits ? T(0) : static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) << by);
}
template <typename T>
__host__ __device__ T shifted_right(T x, T by) {
  constexpr T most = sizeof(T) * 8 - std::is_signed_v<T>;
  return by < 0 || by >= most ? static_cast<T>(x >> most) : static_cast<T>(x >> by);
}
template <>
__host__ __device__ uint8_t shifted_right(uint8_t x, uint8_t by) {
  return by >= 8 ? 0 : x >> by;
}
MUSA_BINARY(lshift, shifted_left(first, second), MUSA_INTEGRAL)
MUSA_BINARY(rshift, shifted_right(first, second), MUSA_INTEGRAL)

// ---- maximum and minimum propagate NaN; fmax and fmin ignore it

MUSA_BINARY(maximum_number, x != x ? x : y != y ? y : x < y ? y : x, MUSA_REAL)
MUSA_BINARY(minimum_number, x != x ? x : y != y ? y : y < x ? y : x, MUSA_REAL)
void maximum(at::TensorIteratorBase& iter) {
  if (iter.common_dtype() == at::kBool) {
    pointwise(iter, [] __host__ __device__(bool x, bool y) -> bool { return x || y; });
  } else {
    maximum_number(iter);
  }
}
void minimum(at::TensorIteratorBase& iter) {
  if (iter.common_dtype() == at::kBool) {
    pointwise(iter, [] __host__ __device__(bool x, bool y) -> bool { return x && y; });
  } else {
    minimum_number(iter);
  }
}
MUSA_BINARY(fmax_floating, std::fmax(x, y), MUSA_FLOATING)
MUSA_BINARY(fmin_floating, std::fmin(x, y), MUSA_FLOATING)
void fmax(at::TensorIteratorBase& iter) {
  at::isFloatingType(iter.common_dtype()) ? fmax_floating(iter) : maximum(iter);
}
void fmin(at::TensorIteratorBase& iter) {
  at::isFloatingType(iter.common_dtype()) ? fmin_floating(iter) : minimum(iter);
}

// ---- geometry and parts of numbers

MUSA_BINARY(atan2, std::atan2(x, y), MUSA_FLOATING)
MUSA_BINARY(hypot, std::hypot(x, y), MUSA_FLOATING)
MUSA_BINARY(copysign, std::copysign(x, y), MUSA_FLOATING)
MUSA_BINARY(nextafter, std::nextafter(x, y), AT_EXPAND(AT_FLOATING_TYPES))

// nextafter in the precision of the half type.
template <typename T>
__host__ __device__ T next_half(T from, T to) {
  const float x = from, y = to;
  if (x != x || y != y) {
    return std::numeric_limits<T>::quiet_NaN();
  }
  if (x == y) {
    return to;
  }
  if (x == 0) {
    return T(y > 0 ? 1 : 0x8001, T::from_bits());
  }
  return T(static_cast<uint16_t>((x < y) == (x > 0) ? from.x + 1 : from.x - 1), T::from_bits());
}
void next(at::TensorIteratorBase& iter) {
  if (iter.common_dtype() == at::kBFloat16) {
    pointwise(
        iter, [] __host__ __device__(c10::BFloat16 x, c10::BFloat16 y) -> c10::BFloat16 { return next_half(x, y); });
  } else if (iter.common_dtype() == at::kHalf) {
    pointwise(iter, [] __host__ __device__(c10::Half x, c10::Half y) -> c10::Half { return next_half(x, y); });
  } else {
    nextafter(iter);
  }
}

void heaviside(at::TensorIteratorBase& iter) {
  MUSA_DISPATCH(iter.dtype(), "heaviside", (MUSA_REAL, at::kBool), {
    pointwise(iter, [] __host__ __device__(scalar_t x, scalar_t at_zero) -> scalar_t {
      return x == scalar_t(0) ? at_zero : static_cast<scalar_t>(x > scalar_t(0));
    });
  });
}

// ---- logarithms

template <typename T>
__host__ __device__ T sum_of_exponentials(T x, T y) {
  if constexpr (c10::is_complex<T>::value) {
    // Subtracts the larger real part, so that neither exponential overflows.
    if (std::isnan(x.real()) || std::isnan(x.imag())) {
      return x;
    }
    if (std::isnan(y.real()) || std::isnan(y.imag())) {
      return y;
    }
    const T low = x.real() < y.real() ? x : y;
    const T high = x.real() < y.real() ? y : x;
    if (!std::isfinite(low.real()) && low.real() == high.real()) {
      if (low.real() < 0) {
        return low;
      }
      return std::log(std::exp(low) + std::exp(high));
    }
    const T ratio = std::exp(low - high);
    return high + std::log1p(ratio);
  } else {
    if (std::isinf(x) && x == y) {
      return x;
    }
    const T high = x != x || x > y ? x : y;
    return high + std::log1p(std::exp(-std::abs(x - y)));
  }
}
MUSA_BINARY(logaddexp, sum_of_exponentials(x, y), MUSA_FLOATING_AND_COMPLEX)

template <typename T>
__host__ __device__ T sum_of_powers_of_two(T x, T y) {
  constexpr double per_e = 1.4426950408889634073599;
  if (std::isinf(x) && x == y) {
    return x;
  }
  const T high = x != x || x > y ? x : y;
  return high + std::log1p(std::exp2(-std::abs(x - y))) * static_cast<T>(per_e);
}
MUSA_BINARY(logaddexp2, sum_of_powers_of_two(x, y), MUSA_FLOATING)

MUSA_BINARY(xlogy, y != y ? y : x == 0 ? op_t(0) : x * std::log(y), MUSA_FLOATING)
MUSA_BINARY(xlog1py, y != y ? y : x == 0 ? op_t(0) : x * std::log1p(y), MUSA_FLOATING)

MUSA_BINARY(igamma, lower_incomplete_gamma(x, y), MUSA_FLOATING)
MUSA_BINARY(igammac, upper_incomplete_gamma(x, y), MUSA_FLOATING)
MUSA_BINARY(zeta, ::zeta(x, y), AT_EXPAND(AT_FLOATING_TYPES))

// ---- losses and their gradients

MUSA_BINARY(mse, (x - y) * (x - y), MUSA_FLOATING)

void smooth_l1(at::TensorIteratorBase& iter, double beta) {
  MUSA_DISPATCH(iter.dtype(), "smooth_l1", (MUSA_FLOATING), {
    const op_t width = static_cast<op_t>(beta);
    pointwise(iter, [width] __host__ __device__(scalar_t x, scalar_t y) -> scalar_t {
      const auto z = std::abs(at::opmath_type<scalar_t>(x) - at::opmath_type<scalar_t>(y));
      return static_cast<scalar_t>(z < width ? z * z / (2 * width) : z - width / 2);
    });
  });
}

void huber(at::TensorIterator& iter, double delta) {
  MUSA_DISPATCH(iter.dtype(), "huber", (MUSA_FLOATING), {
    const op_t width = static_cast<op_t>(delta);
    pointwise(iter, [width] __host__ __device__(scalar_t x, scalar_t y) -> scalar_t {
      const auto z = std::abs(at::opmath_type<scalar_t>(x) - at::opmath_type<scalar_t>(y));
      return static_cast<scalar_t>(z <= width ? z * z / 2 : width * (z - width / 2));
    });
  });
}

// x is the gradient, y the forward function's result.
MUSA_BINARY(sigmoid_backward, x* conjugate((op_t(1) - y) * y), MUSA_FLOATING_AND_COMPLEX)
MUSA_BINARY(tanh_backward, x* conjugate(op_t(1) - y * y), MUSA_FLOATING_AND_COMPLEX)

void logit_backward(at::TensorIteratorBase& iter, const at::Scalar& eps) {
  MUSA_DISPATCH(iter.dtype(), "logit_backward", (MUSA_FLOATING), {
    const op_t low = eps.to<op_t>();
    pointwise(iter, [low] __host__ __device__(scalar_t gradient, scalar_t value) -> scalar_t {
      using op_t = at::opmath_type<scalar_t>;
      const op_t g = gradient, x = value;
      if (low < 0 ? x < 0 || x > 1 : x < low || x > 1 - low) {
        return static_cast<scalar_t>(low < 0 ? std::numeric_limits<op_t>::quiet_NaN() : op_t(0));
      }
      return static_cast<scalar_t>(g / (x * (1 - x)));
    });
  });
}

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(bitwise_and_stub, &musa_ops_ported::bitwise_and)
REGISTER_PRIVATEUSE1_DISPATCH(bitwise_or_stub, &musa_ops_ported::bitwise_or)
REGISTER_PRIVATEUSE1_DISPATCH(bitwise_xor_stub, &musa_ops_ported::bitwise_xor)
REGISTER_PRIVATEUSE1_DISPATCH(lshift_stub, &musa_ops_ported::lshift)
REGISTER_PRIVATEUSE1_DISPATCH(rshift_stub, &musa_ops_ported::rshift)
REGISTER_PRIVATEUSE1_DISPATCH(maximum_stub, &musa_ops_ported::maximum)
REGISTER_PRIVATEUSE1_DISPATCH(minimum_stub, &musa_ops_ported::minimum)
REGISTER_PRIVATEUSE1_DISPATCH(fmax_stub, &musa_ops_ported::fmax)
REGISTER_PRIVATEUSE1_DISPATCH(fmin_stub, &musa_ops_ported::fmin)
REGISTER_PRIVATEUSE1_DISPATCH(atan2_stub, &musa_ops_ported::atan2)
REGISTER_PRIVATEUSE1_DISPATCH(hypot_stub, &musa_ops_ported::hypot)
REGISTER_PRIVATEUSE1_DISPATCH(copysign_stub, &musa_ops_ported::copysign)
REGISTER_PRIVATEUSE1_DISPATCH(nextafter_stub, &musa_ops_ported::next)
REGISTER_PRIVATEUSE1_DISPATCH(heaviside_stub, &musa_ops_ported::heaviside)
REGISTER_PRIVATEUSE1_DISPATCH(logaddexp_stub, &musa_ops_ported::logaddexp)
REGISTER_PRIVATEUSE1_DISPATCH(logaddexp2_stub, &musa_ops_ported::logaddexp2)
REGISTER_PRIVATEUSE1_DISPATCH(xlogy_stub, &musa_ops_ported::xlogy)
REGISTER_PRIVATEUSE1_DISPATCH(xlog1py_stub, &musa_ops_ported::xlog1py)
REGISTER_PRIVATEUSE1_DISPATCH(igamma_stub, &musa_ops_ported::igamma)
REGISTER_PRIVATEUSE1_DISPATCH(igammac_stub, &musa_ops_ported::igammac)
REGISTER_PRIVATEUSE1_DISPATCH(zeta_stub, &musa_ops_ported::zeta)
REGISTER_PRIVATEUSE1_DISPATCH(mse_stub, &musa_ops_ported::mse)
REGISTER_PRIVATEUSE1_DISPATCH(smooth_l1_stub, &musa_ops_ported::smooth_l1)
REGISTER_PRIVATEUSE1_DISPATCH(huber_stub, &musa_ops_ported::huber)
REGISTER_PRIVATEUSE1_DISPATCH(sigmoid_backward_stub, &musa_ops_ported::sigmoid_backward)
REGISTER_PRIVATEUSE1_DISPATCH(tanh_backward_stub, &musa_ops_ported::tanh_backward)
REGISTER_PRIVATEUSE1_DISPATCH(logit_backward_stub, &musa_ops_ported::logit_backward)
} // namespace at::native
