// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Unary functions over lists of tensors.
#include <c10/util/complex.h>

#include <cmath>

#include "engines/dispatch.h"
#include "engines/tensor_lists.muh"
#include "kernels/ForeachUnaryOp.h"
#include "kernels/foreach.h"

namespace musa_ops_ported {
namespace {

// Defines a function object for an operator.
#define MUSA_LIST_FUNCTION(NAME, EXPRESSION) \
  struct NAME { \
    template <typename T> \
    __device__ C10_ALWAYS_INLINE T operator()(T x, T) const { \
      return EXPRESSION; \
    } \
  };
MUSA_LIST_FUNCTION(Abs, std::abs(x))
MUSA_LIST_FUNCTION(Acos, std::acos(x))
MUSA_LIST_FUNCTION(Asin, std::asin(x))
MUSA_LIST_FUNCTION(Atan, std::atan(x))
MUSA_LIST_FUNCTION(Ceil, std::ceil(x))
MUSA_LIST_FUNCTION(Cos, std::cos(x))
MUSA_LIST_FUNCTION(Cosh, std::cosh(x))
MUSA_LIST_FUNCTION(Erf, std::erf(x))
MUSA_LIST_FUNCTION(Erfc, std::erfc(x))
MUSA_LIST_FUNCTION(Exp, std::exp(x))
MUSA_LIST_FUNCTION(Expm1, std::expm1(x))
MUSA_LIST_FUNCTION(Floor, std::floor(x))
MUSA_LIST_FUNCTION(Frac, x - std::trunc(x))
MUSA_LIST_FUNCTION(Lgamma, std::lgamma(x))
MUSA_LIST_FUNCTION(Log, std::log(x))
MUSA_LIST_FUNCTION(Log10, std::log10(x))
MUSA_LIST_FUNCTION(Log1p, std::log1p(x))
MUSA_LIST_FUNCTION(Log2, std::log2(x))
MUSA_LIST_FUNCTION(Neg, -x)
MUSA_LIST_FUNCTION(Reciprocal, T(1) / x)
MUSA_LIST_FUNCTION(Round, std::nearbyint(x))
MUSA_LIST_FUNCTION(Rsqrt, T(1) / std::sqrt(x))
MUSA_LIST_FUNCTION(Sigmoid, T(1) / (T(1) + std::exp(-x)))
MUSA_LIST_FUNCTION(Sign, static_cast<T>((0 < x) - (x < 0)))
MUSA_LIST_FUNCTION(Sin, std::sin(x))
MUSA_LIST_FUNCTION(Sinh, std::sinh(x))
MUSA_LIST_FUNCTION(Sqrt, std::sqrt(x))
MUSA_LIST_FUNCTION(Tan, std::tan(x))
MUSA_LIST_FUNCTION(Tanh, std::tanh(x))
MUSA_LIST_FUNCTION(Trunc, std::trunc(x))

template <typename F>
void apply_real(at::TensorList self, at::TensorList out) {
  MUSA_DISPATCH(self[0].scalar_type(), "foreach", (MUSA_FLOATING), { over_lists<scalar_t>(F(), {}, out, self); });
}
template <typename F>
void apply(at::TensorList self, at::TensorList out) {
  MUSA_DISPATCH(self[0].scalar_type(), "foreach", (MUSA_FLOATING, AT_EXPAND(AT_COMPLEX_TYPES)), {
    over_lists<scalar_t>(F(), {}, out, self);
  });
}

} // namespace

// Defines both overloads of an operator for the dtypes that it supports.
#define MUSA_LIST_OPERATOR(NAME, FUNCTION, APPLY) \
  std::vector<at::Tensor> NAME(at::TensorList self) { \
    std::vector<at::Tensor> out = like(self); \
    APPLY<FUNCTION>(self, out); \
    return out; \
  } \
  void NAME##_(at::TensorList self) { APPLY<FUNCTION>(self, self); }

MUSA_LIST_OPERATOR(_foreach_abs, Abs, apply_real)
MUSA_LIST_OPERATOR(_foreach_acos, Acos, apply)
MUSA_LIST_OPERATOR(_foreach_asin, Asin, apply)
MUSA_LIST_OPERATOR(_foreach_atan, Atan, apply)
MUSA_LIST_OPERATOR(_foreach_ceil, Ceil, apply_real)
MUSA_LIST_OPERATOR(_foreach_cos, Cos, apply)
MUSA_LIST_OPERATOR(_foreach_cosh, Cosh, apply)
MUSA_LIST_OPERATOR(_foreach_erf, Erf, apply_real)
MUSA_LIST_OPERATOR(_foreach_erfc, Erfc, apply_real)
MUSA_LIST_OPERATOR(_foreach_exp, Exp, apply)
MUSA_LIST_OPERATOR(_foreach_expm1, Expm1, apply)
MUSA_LIST_OPERATOR(_foreach_floor, Floor, apply_real)
MUSA_LIST_OPERATOR(_foreach_frac, Frac, apply_real)
MUSA_LIST_OPERATOR(_foreach_lgamma, Lgamma, apply_real)
MUSA_LIST_OPERATOR(_foreach_log, Log, apply)
MUSA_LIST_OPERATOR(_foreach_log10, Log10, apply)
MUSA_LIST_OPERATOR(_foreach_log1p, Log1p, apply)
MUSA_LIST_OPERATOR(_foreach_log2, Log2, apply)
MUSA_LIST_OPERATOR(_foreach_neg, Neg, apply)
MUSA_LIST_OPERATOR(_foreach_reciprocal, Reciprocal, apply)
MUSA_LIST_OPERATOR(_foreach_round, Round, apply_real)
MUSA_LIST_OPERATOR(_foreach_rsqrt, Rsqrt, apply)
MUSA_LIST_OPERATOR(_foreach_sigmoid, Sigmoid, apply)
MUSA_LIST_OPERATOR(_foreach_sign, Sign, apply_real)
MUSA_LIST_OPERATOR(_foreach_sin, Sin, apply)
MUSA_LIST_OPERATOR(_foreach_sinh, Sinh, apply)
MUSA_LIST_OPERATOR(_foreach_sqrt, Sqrt, apply)
MUSA_LIST_OPERATOR(_foreach_tan, Tan, apply)
MUSA_LIST_OPERATOR(_foreach_tanh, Tanh, apply)
MUSA_LIST_OPERATOR(_foreach_trunc, Trunc, apply_real)

namespace {

struct Zero {
  template <typename T>
  __device__ C10_ALWAYS_INLINE T operator()(T) const {
    return T(0);
  }
};

} // namespace

void _foreach_zero_(at::TensorList self) {
  MUSA_DISPATCH(self[0].scalar_type(), "foreach_zero", (MUSA_NUMBERS), { over_lists<scalar_t>(Zero(), {}, self); });
}

} // namespace musa_ops_ported
