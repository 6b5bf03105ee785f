// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Binary functions over lists of tensors: of two elements, or of an element and a number.
#include <c10/util/complex.h>

#include <cmath>

#include "engines/dispatch.h"
#include "engines/tensor_lists.muh"
#include "kernels/ForeachBinaryOp.h"
#include "kernels/foreach.h"
#include "kernels/numbers.muh"

namespace musa_ops_ported {
namespace {

// With lists: x, y and a factor. With numbers: x and y.
struct Add {
  template <typename T>
  __device__ C10_ALWAYS_INLINE T operator()(T x, T y, T factor) const {
    return x + factor * y;
  }
  template <typename T>
  __device__ C10_ALWAYS_INLINE T operator()(T x, T y) const {
    return x + y;
  }
};

#define MUSA_LIST_FUNCTION(NAME, EXPRESSION) \
  struct NAME { \
    template <typename T> \
    __device__ C10_ALWAYS_INLINE T operator()(T x, T y, T) const { \
      return EXPRESSION; \
    } \
    template <typename T> \
    __device__ C10_ALWAYS_INLINE T operator()(T x, T y) const { \
      return EXPRESSION; \
    } \
  };
MUSA_LIST_FUNCTION(Multiply, x* y)
MUSA_LIST_FUNCTION(Divide, x / y)
MUSA_LIST_FUNCTION(Larger, x != x ? x : y != y ? y : x < y ? y : x)
MUSA_LIST_FUNCTION(Smaller, x != x ? x : y != y ? y : y < x ? y : x)

MUSA_LIST_FUNCTION(Power, power(x, y))

// Reads the second operand of all elements from device memory.
template <typename T, typename F>
struct WithNumberAt {
  const T* number;
  __device__ C10_ALWAYS_INLINE at::opmath_type<T> operator()(at::opmath_type<T> x, at::opmath_type<T> factor) const {
    return F()(x, static_cast<at::opmath_type<T>>(*number), factor);
  }
};

// The dtypes that each operator supports.
struct Real {
  template <typename Body>
  static void dispatch(at::ScalarType dtype, const Body& body) {
    MUSA_DISPATCH(dtype, "foreach", (MUSA_REAL), { body(scalar_t()); });
  }
};
struct All {
  template <typename Body>
  static void dispatch(at::ScalarType dtype, const Body& body) {
    MUSA_DISPATCH(dtype, "foreach", (MUSA_REAL, AT_EXPAND(AT_COMPLEX_TYPES)), { body(scalar_t()); });
  }
};

template <typename F, typename Numbers>
void with_list(at::TensorList self, at::TensorList other, const at::Scalar& factor, at::TensorList out) {
  Numbers::dispatch(self[0].scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    over_lists<T>(F(), {factor.to<at::opmath_type<T>>()}, out, self, other);
  });
}
template <typename F, typename Numbers>
void with_numbers(at::TensorList self, at::ArrayRef<at::Scalar> numbers, at::TensorList out) {
  Numbers::dispatch(self[0].scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    over_lists<T>(F(), as<at::opmath_type<T>>(numbers), out, self);
  });
}
template <typename F, typename Numbers>
void with_tensor(at::TensorList self, const at::Tensor& other, const at::Scalar& factor, at::TensorList out) {
  Numbers::dispatch(self[0].scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    over_lists<T>(WithNumberAt<T, F>{other.const_data_ptr<T>()}, {factor.to<at::opmath_type<T>>()}, out, self);
  });
}

} // namespace

// Defines an operator's overloads: with one number, with one number per tensor, and with a list.
#define MUSA_LIST_OPERATOR(NAME, FUNCTION, NUMBERS) \
  std::vector<at::Tensor> NAME##_Scalar(at::TensorList self, const at::Scalar& number) { \
    std::vector<at::Tensor> out = like(self); \
    with_numbers<FUNCTION, NUMBERS>(self, number, out); \
    return out; \
  } \
  void NAME##__Scalar(at::TensorList self, const at::Scalar& number) { \
    with_numbers<FUNCTION, NUMBERS>(self, number, self); \
  } \
  std::vector<at::Tensor> NAME##_ScalarList(at::TensorList self, at::ArrayRef<at::Scalar> numbers) { \
    std::vector<at::Tensor> out = like(self); \
    with_numbers<FUNCTION, NUMBERS>(self, numbers, out); \
    return out; \
  } \
  void NAME##__ScalarList(at::TensorList self, at::ArrayRef<at::Scalar> numbers) { \
    with_numbers<FUNCTION, NUMBERS>(self, numbers, self); \
  }
#define MUSA_LIST_OPERATOR_LIST(NAME, FUNCTION, NUMBERS) \
  std::vector<at::Tensor> NAME##_List(at::TensorList self, at::TensorList other) { \
    std::vector<at::Tensor> out = like(self); \
    with_list<FUNCTION, NUMBERS>(self, other, 1, out); \
    return out; \
  } \
  void NAME##__List(at::TensorList self, at::TensorList other) { with_list<FUNCTION, NUMBERS>(self, other, 1, self); }

MUSA_LIST_OPERATOR(_foreach_add, Add, All)
MUSA_LIST_OPERATOR(_foreach_mul, Multiply, All)
MUSA_LIST_OPERATOR(_foreach_div, Divide, All)
MUSA_LIST_OPERATOR(_foreach_clamp_max, Smaller, Real)
MUSA_LIST_OPERATOR(_foreach_clamp_min, Larger, Real)
MUSA_LIST_OPERATOR(_foreach_maximum, Larger, Real)
MUSA_LIST_OPERATOR(_foreach_minimum, Smaller, Real)
MUSA_LIST_OPERATOR(_foreach_pow, Power, All)
MUSA_LIST_OPERATOR_LIST(_foreach_mul, Multiply, All)
MUSA_LIST_OPERATOR_LIST(_foreach_div, Divide, All)
MUSA_LIST_OPERATOR_LIST(_foreach_clamp_max, Smaller, Real)
MUSA_LIST_OPERATOR_LIST(_foreach_clamp_min, Larger, Real)
MUSA_LIST_OPERATOR_LIST(_foreach_maximum, Larger, Real)
MUSA_LIST_OPERATOR_LIST(_foreach_minimum, Smaller, Real)
MUSA_LIST_OPERATOR_LIST(_foreach_pow, Power, All)

// ---- sums and differences, which have a factor

namespace {

std::vector<at::Scalar> negated(at::ArrayRef<at::Scalar> numbers) {
  std::vector<at::Scalar> result;
  for (const at::Scalar& number : numbers) {
    result.push_back(-number);
  }
  return result;
}

} // namespace

std::vector<at::Tensor> _foreach_add_List(at::TensorList self, at::TensorList other, const at::Scalar& alpha) {
  std::vector<at::Tensor> out = like(self);
  with_list<Add, All>(self, other, alpha, out);
  return out;
}
void _foreach_add__List(at::TensorList self, at::TensorList other, const at::Scalar& alpha) {
  with_list<Add, All>(self, other, alpha, self);
}
std::vector<at::Tensor> _foreach_sub_List(at::TensorList self, at::TensorList other, const at::Scalar& alpha) {
  return _foreach_add_List(self, other, -alpha);
}
void _foreach_sub__List(at::TensorList self, at::TensorList other, const at::Scalar& alpha) {
  _foreach_add__List(self, other, -alpha);
}
std::vector<at::Tensor> _foreach_sub_Scalar(at::TensorList self, const at::Scalar& number) {
  return _foreach_add_Scalar(self, -number);
}
void _foreach_sub__Scalar(at::TensorList self, const at::Scalar& number) { _foreach_add__Scalar(self, -number); }
std::vector<at::Tensor> _foreach_sub_ScalarList(at::TensorList self, at::ArrayRef<at::Scalar> numbers) {
  return _foreach_add_ScalarList(self, negated(numbers));
}
void _foreach_sub__ScalarList(at::TensorList self, at::ArrayRef<at::Scalar> numbers) {
  _foreach_add__ScalarList(self, negated(numbers));
}

// ---- with a one-element tensor on the device

std::vector<at::Tensor> _foreach_add_Tensor(at::TensorList self, const at::Tensor& other, const at::Scalar& alpha) {
  std::vector<at::Tensor> out = like(self);
  with_tensor<Add, All>(self, other, alpha, out);
  return out;
}
void _foreach_add__Tensor(at::TensorList self, const at::Tensor& other, const at::Scalar& alpha) {
  with_tensor<Add, All>(self, other, alpha, self);
}
std::vector<at::Tensor> _foreach_mul_Tensor(at::TensorList self, const at::Tensor& other) {
  std::vector<at::Tensor> out = like(self);
  with_tensor<Multiply, All>(self, other, 1, out);
  return out;
}
void _foreach_mul__Tensor(at::TensorList self, const at::Tensor& other) {
  with_tensor<Multiply, All>(self, other, 1, self);
}
std::vector<at::Tensor> _foreach_div_Tensor(at::TensorList self, const at::Tensor& other) {
  std::vector<at::Tensor> out = like(self);
  with_tensor<Divide, All>(self, other, 1, out);
  return out;
}
void _foreach_div__Tensor(at::TensorList self, const at::Tensor& other) {
  with_tensor<Divide, All>(self, other, 1, self);
}

namespace {

struct NumberToThePower {
  template <typename T>
  __device__ C10_ALWAYS_INLINE T operator()(T exponent, T base) const {
    return power(base, exponent);
  }
};

} // namespace

std::vector<at::Tensor> _foreach_pow_ScalarAndTensor(const at::Scalar& self, at::TensorList exponent) {
  std::vector<at::Tensor> out = like(exponent);
  with_numbers<NumberToThePower, All>(exponent, self, out);
  return out;
}

} // namespace musa_ops_ported
