// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/native/BinaryOps.h>
#include <ATen/native/Pow.h>
#include <c10/util/complex.h>
#include <c10/util/generic_math.h>

#include "engines/dispatch.h"
#include "engines/pointwise.muh"
#include "kernels/numbers.muh"

namespace musa_ops_ported {
namespace {

void add(at::TensorIteratorBase& iter, const at::Scalar& alpha) {
  if (iter.common_dtype() == at::kBool) {
    const bool factor = alpha.toBool();
    pointwise(iter, [factor] __host__ __device__(bool x, bool y) -> bool { return x || (factor && y); });
    return;
  }
  MUSA_DISPATCH(iter.common_dtype(), "add", (MUSA_NUMBERS, MUSA_UNSIGNED), {
    const op_t factor = alpha.to<op_t>();
    pointwise(iter, holding<scalar_t>([factor] __host__ __device__(op_t x, op_t y) -> op_t { return x + factor * y; }));
  });
}

void mul(at::TensorIteratorBase& iter) {
  if (iter.common_dtype() == at::kBool) {
    pointwise(iter, [] __host__ __device__(bool x, bool y) -> bool { return x && y; });
    return;
  }
  MUSA_DISPATCH(iter.common_dtype(), "mul", (MUSA_NUMBERS, MUSA_UNSIGNED), {
    pointwise(iter, holding<scalar_t>([] __host__ __device__(op_t x, op_t y) -> op_t { return x * y; }));
  });
}

void div_true(at::TensorIteratorBase& iter) {
  MUSA_DISPATCH(iter.common_dtype(), "div_true", (MUSA_FLOATING_AND_COMPLEX), {
    pointwise(iter, holding<scalar_t>([] __host__ __device__(op_t x, op_t y) -> op_t { return x / y; }));
  });
}

// Integer division by zero returns the result of a GPU instead of trapping.
template <typename T>
__host__ __device__ T quotient(T x, T y) {
  if constexpr (std::is_signed_v<T>) {
    return y == 0    ? T(-1)
        : y == T(-1) ? static_cast<T>(-static_cast<std::make_unsigned_t<T>>(x))
                     : static_cast<T>(x / y);
  } else {
    return y == 0 ? static_cast<T>(-1) : static_cast<T>(x / y);
  }
}

template <typename T>
__host__ __device__ T truncated(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return quotient(x, y);
  } else {
    return std::trunc(x / y);
  }
}
MUSA_BINARY(div_trunc, truncated(x, y), MUSA_REAL)

// Division as in Python: rounds towards minus infinity, and is consistent with remaining().
template <typename T>
__host__ __device__ T floored(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    const T result = quotient(x, y);
    if constexpr (std::is_signed_v<T>) {
      return y != 0 && y != T(-1) && (x < 0) != (y < 0) && result * y != x ? result - 1 : result;
    } else {
      return result;
    }
  } else {
    if (y == 0) {
      return x / y;
    }
    T rest = std::fmod(x, y);
    T result = (x - rest) / y;
    if (rest != 0 && (y < 0) != (rest < 0)) {
      result -= 1;
    }
    if (result == 0) {
      return std::copysign(T(0), x / y);
    }
    const T whole = std::floor(result);
    return result - whole > T(0.5) ? whole + 1 : whole;
  }
}
MUSA_BINARY(div_floor, floored(x, y), MUSA_REAL)

template <typename T>
__host__ __device__ T remaining(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    if (y == 0) {
      return x; // CUDA's result depends on the dtype; most dtypes return x
    }
    if constexpr (std::is_signed_v<T>) {
      if (y == T(-1)) {
        return 0;
      }
    }
    const T rest = x % y;
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  } else {
    const T rest = std::fmod(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  }
}
MUSA_BINARY(remainder, remaining(x, y), MUSA_REAL)

template <typename T>
__host__ __device__ T c_remainder(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    if (y == 0) {
      return x;
    }
    if constexpr (std::is_signed_v<T>) {
      if (y == T(-1)) {
        return 0;
      }
    }
    return x % y;
  } else {
    return std::fmod(x, y);
  }
}
MUSA_BINARY(fmod, c_remainder(x, y), MUSA_REAL)

template <typename T>
__host__ __device__ T divisor(T x, T y) {
  x = x < 0 ? -x : x;
  y = y < 0 ? -y : y;
  while (y != 0) {
    const T rest = x % y;
    x = y;
    y = rest;
  }
  return x;
}
template <typename T>
__host__ __device__ T multiple(T x, T y) {
  const T common = divisor(x, y);
  if (common == 0) {
    return 0;
  }
  const T result = x / common * y;
  return result < 0 ? -result : result;
}
MUSA_BINARY(gcd, divisor(x, y), MUSA_INTEGRAL)
MUSA_BINARY(lcm, multiple(x, y), MUSA_INTEGRAL)

// ---- powers

void pow_tensor(at::TensorIteratorBase& iter) {
  MUSA_DISPATCH(iter.common_dtype(), "pow", (MUSA_NUMBERS), {
    pointwise(iter, [] __host__ __device__(scalar_t x, scalar_t y) -> scalar_t {
      return static_cast<scalar_t>(power(at::opmath_type<scalar_t>(x), at::opmath_type<scalar_t>(y)));
    });
  });
}

void square(at::TensorIteratorBase& iter) {
  MUSA_DISPATCH(iter.common_dtype(), "pow", (MUSA_NUMBERS), {
    pointwise(iter, [] __host__ __device__(scalar_t value) -> scalar_t {
      const at::opmath_type<scalar_t> x = value;
      return static_cast<scalar_t>(x * x);
    });
  });
}

void pow_scalar(at::TensorIteratorBase& iter, const at::Scalar& exponent) {
  if (exponent.equal(2)) {
    square(iter);
    return;
  }
  MUSA_DISPATCH(iter.common_dtype(), "pow", (MUSA_NUMBERS), {
    const op_t y = exponent.to<op_t>();
    const bool root = exponent.equal(0.5);
    pointwise(iter, [y, root] __host__ __device__(scalar_t value) -> scalar_t {
      using op_t = at::opmath_type<scalar_t>;
      const op_t x = value;
      if constexpr (!std::is_integral_v<scalar_t> && !c10::is_complex<scalar_t>::value) {
        if (root) {
          return static_cast<scalar_t>(std::sqrt(x));
        }
      }
      return static_cast<scalar_t>(power(x, y));
    });
  });
}

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(add_stub, &musa_ops_ported::add)
REGISTER_PRIVATEUSE1_DISPATCH(mul_stub, &musa_ops_ported::mul)
REGISTER_PRIVATEUSE1_DISPATCH(div_true_stub, &musa_ops_ported::div_true)
REGISTER_PRIVATEUSE1_DISPATCH(div_trunc_stub, &musa_ops_ported::div_trunc)
REGISTER_PRIVATEUSE1_DISPATCH(div_floor_stub, &musa_ops_ported::div_floor)
REGISTER_PRIVATEUSE1_DISPATCH(remainder_stub, &musa_ops_ported::remainder)
REGISTER_PRIVATEUSE1_DISPATCH(fmod_stub, &musa_ops_ported::fmod)
REGISTER_PRIVATEUSE1_DISPATCH(gcd_stub, &musa_ops_ported::gcd)
REGISTER_PRIVATEUSE1_DISPATCH(lcm_stub, &musa_ops_ported::lcm)
REGISTER_PRIVATEUSE1_DISPATCH(pow_tensor_tensor_stub, &musa_ops_ported::pow_tensor)
REGISTER_PRIVATEUSE1_DISPATCH(pow_tensor_scalar_stub, &musa_ops_ported::pow_scalar)
} // namespace at::native
