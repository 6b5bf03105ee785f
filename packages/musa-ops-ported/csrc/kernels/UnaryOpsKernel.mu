// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/native/UnaryOps.h>
#include <c10/util/complex.h>

#include <limits>

#include "engines/dispatch.h"
#include "engines/pointwise.muh"
#include "kernels/numbers.muh"

namespace musa_ops_ported {
namespace {

template <typename T>
__host__ __device__ T magnitude(T x) {
  if constexpr (std::is_same_v<T, bool> || std::is_unsigned_v<T>) {
    return x;
  } else {
    return std::abs(x);
  }
}
void abs(at::TensorIteratorBase& iter) {
  const auto dtype = iter.common_dtype();
  if (at::isComplexType(dtype)) {
    // Complex input, real output.
    MUSA_DISPATCH(dtype, "abs", (MUSA_COMPLEX), {
      using real_t = typename c10::scalar_value_type<scalar_t>::type;
      pointwise(iter, [] __host__ __device__(scalar_t x) -> real_t { return static_cast<real_t>(std::abs(op_t(x))); });
    });
    return;
  }
  MUSA_DISPATCH(dtype, "abs", (MUSA_REAL, at::kBool), {
    pointwise(iter, [] __host__ __device__(scalar_t x) -> scalar_t {
      return static_cast<scalar_t>(magnitude(at::opmath_type<scalar_t>(x)));
    });
  });
}

void angle(at::TensorIteratorBase& iter) {
  const auto dtype = iter.common_dtype();
  if (at::isComplexType(dtype)) {
    MUSA_DISPATCH(dtype, "angle", (MUSA_COMPLEX), {
      using real_t = typename c10::scalar_value_type<scalar_t>::type;
      pointwise(iter, [] __host__ __device__(scalar_t x) -> real_t { return static_cast<real_t>(std::arg(op_t(x))); });
    });
    return;
  }
  MUSA_DISPATCH(dtype, "angle", (MUSA_FLOATING), {
    pointwise(iter, [] __host__ __device__(scalar_t value) -> scalar_t {
      const auto x = at::opmath_type<scalar_t>(value);
      return static_cast<scalar_t>(x != x ? x : x < 0 ? decltype(x)(3.14159265358979323846) : decltype(x)(0));
    });
  });
}

MUSA_UNARY(conj_physical, conjugate(x), MUSA_ALL)

MUSA_UNARY(bitwise_not_integer, ~value, MUSA_INTEGRAL)
void bitwise_not(at::TensorIteratorBase& iter) {
  if (iter.dtype() == at::kBool) {
    pointwise(iter, [] __host__ __device__(bool x) -> bool { return !x; });
  } else {
    bitwise_not_integer(iter);
  }
}

void logical_not(at::TensorIteratorBase& iter) {
  MUSA_DISPATCH(iter.dtype(1), "logical_not", (MUSA_ALL), {
    pointwise(iter, [] __host__ __device__(scalar_t x) -> bool { return x == scalar_t(0); });
  });
}

template <typename T>
__host__ __device__ T negative(T x) {
  return -x;
}
MUSA_UNARY(neg, negative(x), MUSA_NUMBERS)

void sign(at::TensorIteratorBase& iter) {
  if (iter.dtype() == at::kBool) {
    pointwise(iter, [] __host__ __device__(bool x) -> bool { return x; });
    return;
  }
  MUSA_DISPATCH(iter.dtype(), "sign", (MUSA_REAL), {
    pointwise(iter, [] __host__ __device__(scalar_t x) -> scalar_t {
      const auto wide = at::opmath_type<scalar_t>(x);
      // As in CUDA, the sign of NaN is 0.
      return static_cast<scalar_t>((0 < wide) - (wide < 0));
    });
  });
}

void signbit(at::TensorIteratorBase& iter) {
  if (at::isIntegralType(iter.input_dtype(), /*includeBool=*/false)) {
    MUSA_DISPATCH(iter.input_dtype(), "signbit", (MUSA_INTEGRAL), {
      pointwise(iter, [] __host__ __device__(scalar_t x) -> bool {
        if constexpr (std::is_unsigned_v<scalar_t>) {
          return false;
        } else {
          return x < 0;
        }
      });
    });
    return;
  }
  MUSA_DISPATCH(iter.input_dtype(), "signbit", (MUSA_FLOATING), {
    pointwise(iter, [] __host__ __device__(scalar_t x) -> bool {
      return std::copysign(at::opmath_type<scalar_t>(1), at::opmath_type<scalar_t>(x)) < 0;
    });
  });
}

template <typename T>
__host__ __device__ T direction(T x) {
  const auto length = std::abs(x);
  return length == 0 ? T(0) : x / length;
}
void sgn(at::TensorIteratorBase& iter) {
  if (!at::isComplexType(iter.dtype())) {
    sign(iter);
    return;
  }
  MUSA_DISPATCH(iter.dtype(), "sgn", (MUSA_COMPLEX), {
    pointwise(iter, [] __host__ __device__(scalar_t x) -> scalar_t {
      return static_cast<scalar_t>(direction(at::opmath_type<scalar_t>(x)));
    });
  });
}

MUSA_UNARY(ceil, std::ceil(x), MUSA_FLOATING)
MUSA_UNARY(floor, std::floor(x), MUSA_FLOATING)
MUSA_UNARY(trunc, std::trunc(x), MUSA_FLOATING)
MUSA_UNARY(round, std::nearbyint(x), MUSA_FLOATING) // rounds half to even
MUSA_UNARY(frac, x - std::trunc(x), MUSA_FLOATING)

void round_decimals(at::TensorIteratorBase& iter, int64_t decimals) {
  MUSA_DISPATCH(iter.dtype(), "round_decimals", (MUSA_FLOATING), {
    const bool negative = decimals < 0;
    const op_t power = static_cast<op_t>(std::pow(10.0, static_cast<double>(negative ? -decimals : decimals)));
    pointwise(iter, [power, negative] __host__ __device__(scalar_t x) -> scalar_t {
      const auto wide = at::opmath_type<scalar_t>(x);
      return static_cast<scalar_t>(
          negative ? std::nearbyint(wide / power) * power : std::nearbyint(wide * power) / power);
    });
  });
}

template <typename T>
__host__ __device__ T inverse(T x) {
  return T(1) / x;
}
MUSA_UNARY(reciprocal, inverse(x), MUSA_FLOATING_AND_COMPLEX)
MUSA_UNARY(sqrt, std::sqrt(x), MUSA_FLOATING_AND_COMPLEX)
MUSA_UNARY(rsqrt, inverse(std::sqrt(x)), MUSA_FLOATING_AND_COMPLEX)
MUSA_UNARY(sigmoid, op_t(1) / (op_t(1) + std::exp(-x)), MUSA_FLOATING_AND_COMPLEX)

void logit(at::TensorIteratorBase& iter, const at::Scalar& eps) {
  MUSA_DISPATCH(iter.common_dtype(), "logit", (MUSA_FLOATING), {
    const op_t low = eps.to<op_t>();
    pointwise(iter, [low] __host__ __device__(scalar_t value) -> scalar_t {
      const auto x = at::opmath_type<scalar_t>(value);
      const auto clamped = low < 0 ? x : x < low ? low : x > 1 - low ? 1 - low : x;
      return static_cast<scalar_t>(std::log(clamped / (1 - clamped)));
    });
  });
}

template <typename T>
struct Replacements {
  T nan, positive, negative;
  __host__ __device__ T operator()(T x) const {
    return x != x                                  ? nan
        : x == std::numeric_limits<T>::infinity()  ? positive
        : x == -std::numeric_limits<T>::infinity() ? negative
                                                   : x;
  }
};
void nan_to_num(
    at::TensorIteratorBase& iter, std::optional<double> nan, std::optional<double> positive,
    std::optional<double> negative) {
  const auto replacements = [&](auto lowest, auto highest) {
    using T = decltype(highest);
    return Replacements<T>{
        static_cast<T>(nan.value_or(0)), positive.has_value() ? static_cast<T>(*positive) : highest,
        negative.has_value() ? static_cast<T>(*negative) : lowest};
  };
  if (at::isComplexType(iter.dtype())) {
    MUSA_DISPATCH(iter.dtype(), "nan_to_num", (AT_EXPAND(AT_COMPLEX_TYPES)), {
      using real_t = typename c10::scalar_value_type<scalar_t>::type;
      const auto replace = replacements(std::numeric_limits<real_t>::lowest(), std::numeric_limits<real_t>::max());
      pointwise(iter, [replace] __host__ __device__(scalar_t x) -> scalar_t {
        return scalar_t(replace(x.real()), replace(x.imag()));
      });
    });
    return;
  }
  MUSA_DISPATCH(iter.dtype(), "nan_to_num", (MUSA_FLOATING), {
    const auto replace = replacements(
        static_cast<op_t>(std::numeric_limits<scalar_t>::lowest()),
        static_cast<op_t>(std::numeric_limits<scalar_t>::max()));
    pointwise(iter, [replace] __host__ __device__(scalar_t x) -> scalar_t {
      return static_cast<scalar_t>(replace(at::opmath_type<scalar_t>(x)));
    });
  });
}

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(abs_stub, &musa_ops_ported::abs)
REGISTER_PRIVATEUSE1_DISPATCH(angle_stub, &musa_ops_ported::angle)
REGISTER_PRIVATEUSE1_DISPATCH(conj_physical_stub, &musa_ops_ported::conj_physical)
REGISTER_PRIVATEUSE1_DISPATCH(bitwise_not_stub, &musa_ops_ported::bitwise_not)
REGISTER_PRIVATEUSE1_DISPATCH(logical_not_stub, &musa_ops_ported::logical_not)
REGISTER_PRIVATEUSE1_DISPATCH(neg_stub, &musa_ops_ported::neg)
REGISTER_PRIVATEUSE1_DISPATCH(sign_stub, &musa_ops_ported::sign)
REGISTER_PRIVATEUSE1_DISPATCH(signbit_stub, &musa_ops_ported::signbit)
REGISTER_PRIVATEUSE1_DISPATCH(sgn_stub, &musa_ops_ported::sgn)
REGISTER_PRIVATEUSE1_DISPATCH(ceil_stub, &musa_ops_ported::ceil)
REGISTER_PRIVATEUSE1_DISPATCH(floor_stub, &musa_ops_ported::floor)
REGISTER_PRIVATEUSE1_DISPATCH(trunc_stub, &musa_ops_ported::trunc)
REGISTER_PRIVATEUSE1_DISPATCH(round_stub, &musa_ops_ported::round)
REGISTER_PRIVATEUSE1_DISPATCH(round_decimals_stub, &musa_ops_ported::round_decimals)
REGISTER_PRIVATEUSE1_DISPATCH(frac_stub, &musa_ops_ported::frac)
REGISTER_PRIVATEUSE1_DISPATCH(reciprocal_stub, &musa_ops_ported::reciprocal)
REGISTER_PRIVATEUSE1_DISPATCH(sqrt_stub, &musa_ops_ported::sqrt)
REGISTER_PRIVATEUSE1_DISPATCH(rsqrt_stub, &musa_ops_ported::rsqrt)
REGISTER_PRIVATEUSE1_DISPATCH(sigmoid_stub, &musa_ops_ported::sigmoid)
REGISTER_PRIVATEUSE1_DISPATCH(logit_stub, &musa_ops_ported::logit)
REGISTER_PRIVATEUSE1_DISPATCH(nan_to_num_stub, &musa_ops_ported::nan_to_num)
} // namespace at::native
