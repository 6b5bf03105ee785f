// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Activations and their gradients. In functions of two operands, x is the gradient and y the forward function's input
// or result.
#include <ATen/native/Activation.h>

#include <c10/core/Scalar.h>

#include <cmath>

#include "engines/dispatch.h"
#include "engines/pointwise.muh"
#include "kernels/Activation.h"

namespace musa_ops_ported {
namespace {

template <typename T>
__host__ __device__ T logistic(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

void elu(
    at::TensorIteratorBase& iter, const at::Scalar& alpha, const at::Scalar& scale, const at::Scalar& input_scale) {
  MUSA_DISPATCH(iter.dtype(), "elu", (MUSA_FLOATING), {
    const op_t below = alpha.to<op_t>() * scale.to<op_t>();
    const op_t above = scale.to<op_t>();
    const op_t inner = input_scale.to<op_t>();
    pointwise(iter, [below, above, inner] __host__ __device__(scalar_t value) -> scalar_t {
      const at::opmath_type<scalar_t> x = value;
      return static_cast<scalar_t>(x > 0 ? x * above : std::expm1(x * inner) * below);
    });
  });
}
void elu_backward(
    at::TensorIteratorBase& iter, const at::Scalar& alpha, const at::Scalar& scale, const at::Scalar& input_scale,
    bool is_result) {
  MUSA_DISPATCH(iter.dtype(), "elu_backward", (MUSA_FLOATING), {
    const op_t below = alpha.to<op_t>() * scale.to<op_t>();
    const op_t above = scale.to<op_t>();
    const op_t inner = input_scale.to<op_t>();
    pointwise(
        iter, [below, above, inner, is_result] __host__ __device__(scalar_t gradient, scalar_t value) -> scalar_t {
          const at::opmath_type<scalar_t> g = gradient, x = value;
          if (is_result) {
            return static_cast<scalar_t>(x <= 0 ? g * inner * (x + below) : g * above);
          }
          return static_cast<scalar_t>(x <= 0 ? g * inner * below * std::exp(x * inner) : g * above);
        });
  });
}

void softplus(at::TensorIteratorBase& iter, const at::Scalar& beta, const at::Scalar& threshold) {
  MUSA_DISPATCH(iter.dtype(), "softplus", (MUSA_FLOATING), {
    const op_t b = beta.to<op_t>();
    const op_t limit = threshold.to<op_t>();
    pointwise(iter, [b, limit] __host__ __device__(scalar_t value) -> scalar_t {
      const at::opmath_type<scalar_t> x = value;
      return static_cast<scalar_t>(x * b > limit ? x : std::log1p(std::exp(x * b)) / b);
    });
  });
}
void softplus_backward(at::TensorIteratorBase& iter, const at::Scalar& beta, const at::Scalar& threshold) {
  MUSA_DISPATCH(iter.dtype(), "softplus_backward", (MUSA_FLOATING), {
    const op_t b = beta.to<op_t>();
    const op_t limit = threshold.to<op_t>();
    pointwise(iter, [b, limit] __host__ __device__(scalar_t gradient, scalar_t value) -> scalar_t {
      const at::opmath_type<scalar_t> g = gradient, x = value;
      const auto z = std::exp(x * b);
      return static_cast<scalar_t>(x * b > limit ? g : g * z / (z + 1));
    });
  });
}

void threshold(at::TensorIteratorBase& iter, const at::Scalar& threshold, const at::Scalar& value) {
  MUSA_DISPATCH(iter.dtype(), "threshold", (MUSA_REAL), {
    const auto limit = threshold.to<scalar_t>();
    const auto instead = value.to<scalar_t>();
    pointwise(iter, [limit, instead] __host__ __device__(scalar_t x, scalar_t other) -> scalar_t {
      return x <= limit ? instead : other;
    });
  });
}

void hardtanh_backward(at::TensorIterator& iter, const at::Scalar& min, const at::Scalar& max) {
  MUSA_DISPATCH(iter.dtype(), "hardtanh_backward", (MUSA_FLOATING), {
    const op_t low = min.to<op_t>();
    const op_t high = max.to<op_t>();
    pointwise(iter, [low, high] __host__ __device__(scalar_t gradient, scalar_t value) -> scalar_t {
      const at::opmath_type<scalar_t> x = value;
      return x <= low || x >= high ? scalar_t(0) : gradient;
    });
  });
}

template <typename T>
__host__ __device__ T limited_to_6(T x) {
  return x < 0 ? T(0) : x > 6 ? T(6) : x;
}
MUSA_UNARY(hardsigmoid, limited_to_6(x + 3) / 6, MUSA_FLOATING)
MUSA_BINARY(hardsigmoid_backward, y > -3 && y < 3 ? x / 6 : op_t(0), MUSA_FLOATING)
MUSA_UNARY(hardswish, x* limited_to_6(x + 3) / 6, MUSA_FLOATING)
MUSA_BINARY(hardswish_backward, y <= -3 ? op_t(0) : y < 3 ? x * (y / 3 + op_t(0.5)) : x, MUSA_FLOATING)

void hardshrink(at::TensorIteratorBase& iter, const at::Scalar& lambd) {
  MUSA_DISPATCH(iter.dtype(), "hardshrink", (MUSA_FLOATING), {
    const auto limit = lambd.to<scalar_t>();
    pointwise(iter, [limit] __host__ __device__(scalar_t x) -> scalar_t {
      return x >= -limit && x <= limit ? scalar_t(0) : x;
    });
  });
}
void softshrink(at::TensorIteratorBase& iter, const at::Scalar& lambd) {
  MUSA_DISPATCH(iter.dtype(), "softshrink", (MUSA_FLOATING), {
    const auto limit = lambd.to<scalar_t>();
    pointwise(iter, [limit] __host__ __device__(scalar_t x) -> scalar_t {
      return x > limit ? static_cast<scalar_t>(x - limit)
          : x < -limit ? static_cast<scalar_t>(x + limit)
          : x != x     ? x
                       : scalar_t(0);
    });
  });
}
void shrink_backward(at::TensorIteratorBase& iter, const at::Scalar& lambd) {
  MUSA_DISPATCH(iter.dtype(), "shrink_backward", (MUSA_FLOATING), {
    const auto limit = lambd.to<scalar_t>();
    pointwise(iter, [limit] __host__ __device__(scalar_t gradient, scalar_t x) -> scalar_t {
      return x >= -limit && x <= limit ? scalar_t(0) : gradient;
    });
  });
}

void leaky_relu(at::TensorIteratorBase& iter, const at::Scalar& slope) {
  MUSA_DISPATCH(iter.dtype(), "leaky_relu", (MUSA_FLOATING), {
    const op_t factor = slope.to<op_t>();
    pointwise(iter, [factor] __host__ __device__(scalar_t value) -> scalar_t {
      const at::opmath_type<scalar_t> x = value;
      return static_cast<scalar_t>(x > 0 ? x : x * factor);
    });
  });
}
void leaky_relu_backward(at::TensorIteratorBase& iter, const at::Scalar& slope) {
  MUSA_DISPATCH(iter.dtype(), "leaky_relu_backward", (MUSA_FLOATING), {
    const op_t factor = slope.to<op_t>();
    // Operand order: input, then gradient.
    pointwise(iter, [factor] __host__ __device__(scalar_t value, scalar_t gradient) -> scalar_t {
      const at::opmath_type<scalar_t> x = value, g = gradient;
      return static_cast<scalar_t>(x > 0 ? g : g * factor);
    });
  });
}

MUSA_UNARY(silu, x* logistic(x), MUSA_FLOATING_AND_COMPLEX)
MUSA_BINARY(silu_backward, x* logistic(y) * (op_t(1) + y * (op_t(1) - logistic(y))), MUSA_FLOATING_AND_COMPLEX)

template <typename T>
__host__ __device__ T mish_of(T x) {
  return x * std::tanh(std::log1p(std::exp(x)));
}
template <typename T>
__host__ __device__ T mish_slope(T x) {
  const T outer = std::tanh(std::log1p(std::exp(x)));
  return outer + x * logistic(x) * (1 - outer * outer);
}
MUSA_UNARY(mish, mish_of(x), MUSA_FLOATING)
MUSA_BINARY(mish_backward, x* mish_slope(y), MUSA_FLOATING)

MUSA_BINARY(glu, x* logistic(y), MUSA_FLOATING)

void glu_jvp(at::TensorIteratorBase& iter) {
  MUSA_DISPATCH(iter.dtype(), "glu_jvp", (MUSA_FLOATING), {
    pointwise(iter, [] __host__ __device__(scalar_t result, scalar_t gate, scalar_t da, scalar_t db) -> scalar_t {
      const at::opmath_type<scalar_t> r = result, b = gate, a_step = da, b_step = db;
      const auto sigma = logistic(b);
      return static_cast<scalar_t>(a_step * sigma + r * (b_step - sigma * b_step));
    });
  });
}

MUSA_BINARY(prelu, x > 0 ? x : y * x, MUSA_FLOATING)

// ---- gelu

template <typename T>
__host__ __device__ T gelu_erf(T x) {
  return x * T(0.5) * (T(1) + std::erf(x * T(0.70710678118654752440)));
}
template <typename T>
__host__ __device__ T gelu_tanh(T x) {
  const T inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
  return T(0.5) * x * (T(1) + std::tanh(inner));
}
template <typename T>
__host__ __device__ T gelu_erf_slope(T x) {
  const T density = std::exp(T(-0.5) * x * x) * T(0.39894228040143267794);
  return T(0.5) * (T(1) + std::erf(x * T(0.70710678118654752440))) + x * density;
}
template <typename T>
__host__ __device__ T gelu_tanh_slope(T x) {
  const T cube = T(0.044715);
  const T inner = std::tanh(T(0.79788456080286535588) * (x + cube * x * x * x));
  const T slope = T(0.79788456080286535588) * (T(1) + T(3) * cube * x * x);
  return T(0.5) * (T(1) + inner) + T(0.5) * x * (T(1) - inner * inner) * slope;
}
MUSA_UNARY(gelu_by_erf, gelu_erf(x), MUSA_FLOATING)
MUSA_UNARY(gelu_by_tanh, gelu_tanh(x), MUSA_FLOATING)
MUSA_BINARY(gelu_backward_by_erf, x* gelu_erf_slope(y), MUSA_FLOATING)
MUSA_BINARY(gelu_backward_by_tanh, x* gelu_tanh_slope(y), MUSA_FLOATING)

} // namespace

void gelu(at::TensorIteratorBase& iter, const at::Tensor&, c10::string_view approximate, const at::Tensor&) {
  at::native::get_gelutype_enum(approximate) == at::native::GeluType::Tanh ? gelu_by_tanh(iter) : gelu_by_erf(iter);
}
void gelu_backward(
    at::TensorIteratorBase& iter, const at::Tensor&, const at::Tensor&, c10::string_view approximate,
    const at::Tensor&) {
  at::native::get_gelutype_enum(approximate) == at::native::GeluType::Tanh ? gelu_backward_by_tanh(iter)
                                                                           : gelu_backward_by_erf(iter);
}

} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(elu_stub, &musa_ops_ported::elu)
REGISTER_PRIVATEUSE1_DISPATCH(elu_backward_stub, &musa_ops_ported::elu_backward)
REGISTER_PRIVATEUSE1_DISPATCH(softplus_stub, &musa_ops_ported::softplus)
REGISTER_PRIVATEUSE1_DISPATCH(softplus_backward_stub, &musa_ops_ported::softplus_backward)
REGISTER_PRIVATEUSE1_DISPATCH(threshold_stub, &musa_ops_ported::threshold)
REGISTER_PRIVATEUSE1_DISPATCH(hardtanh_backward_stub, &musa_ops_ported::hardtanh_backward)
REGISTER_PRIVATEUSE1_DISPATCH(hardsigmoid_stub, &musa_ops_ported::hardsigmoid)
REGISTER_PRIVATEUSE1_DISPATCH(hardsigmoid_backward_stub, &musa_ops_ported::hardsigmoid_backward)
REGISTER_PRIVATEUSE1_DISPATCH(hardshrink_stub, &musa_ops_ported::hardshrink)
REGISTER_PRIVATEUSE1_DISPATCH(softshrink_stub, &musa_ops_ported::softshrink)
REGISTER_PRIVATEUSE1_DISPATCH(shrink_backward_stub, &musa_ops_ported::shrink_backward)
REGISTER_PRIVATEUSE1_DISPATCH(leaky_relu_stub, &musa_ops_ported::leaky_relu)
REGISTER_PRIVATEUSE1_DISPATCH(leaky_relu_backward_stub, &musa_ops_ported::leaky_relu_backward)
REGISTER_PRIVATEUSE1_DISPATCH(silu_stub, &musa_ops_ported::silu)
REGISTER_PRIVATEUSE1_DISPATCH(silu_backward_stub, &musa_ops_ported::silu_backward)
REGISTER_PRIVATEUSE1_DISPATCH(mish_stub, &musa_ops_ported::mish)
REGISTER_PRIVATEUSE1_DISPATCH(glu_stub, &musa_ops_ported::glu)
REGISTER_PRIVATEUSE1_DISPATCH(glu_jvp_stub, &musa_ops_ported::glu_jvp)
REGISTER_PRIVATEUSE1_DISPATCH(hardswish_stub, [](TensorIterator& iter) { musa_ops_ported::hardswish(iter); })
REGISTER_PRIVATEUSE1_DISPATCH(hardswish_backward_stub, [](TensorIterator& iter) {
  musa_ops_ported::hardswish_backward(iter);
})
REGISTER_PRIVATEUSE1_DISPATCH(mish_backward_stub, [](TensorIterator& iter) { musa_ops_ported::mish_backward(iter); })
REGISTER_PRIVATEUSE1_DISPATCH(prelu_stub, [](TensorIterator& iter) { musa_ops_ported::prelu(iter); })
} // namespace at::native
