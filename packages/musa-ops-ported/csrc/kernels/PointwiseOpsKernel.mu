// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/native/Activation.h>
#include <ATen/native/Lerp.h>
#include <ATen/native/PointwiseOps.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/native/UnaryOps.h>
#include <c10/util/complex.h>

#include "engines/dispatch.h"
#include "engines/pointwise.muh"
#include "engines/pointwise_pair.muh"

namespace musa_ops_ported {
namespace {

void addcmul(at::TensorIteratorBase& iter, const at::Scalar& value) {
  MUSA_DISPATCH(iter.common_dtype(), "addcmul", (MUSA_NUMBERS), {
    const op_t factor = value.to<op_t>();
    pointwise(iter, [factor] __host__ __device__(scalar_t self, scalar_t first, scalar_t second) -> scalar_t {
      using op_t = at::opmath_type<scalar_t>;
      return static_cast<scalar_t>(op_t(self) + factor * op_t(first) * op_t(second));
    });
  });
}

void addcdiv(at::TensorIteratorBase& iter, const at::Scalar& value) {
  MUSA_DISPATCH(iter.common_dtype(), "addcdiv", (MUSA_FLOATING_AND_COMPLEX), {
    const op_t factor = value.to<op_t>();
    pointwise(iter, [factor] __host__ __device__(scalar_t self, scalar_t first, scalar_t second) -> scalar_t {
      using op_t = at::opmath_type<scalar_t>;
      return static_cast<scalar_t>(op_t(self) + factor * (op_t(first) / op_t(second)));
    });
  });
}

void lerp_scalar(at::TensorIteratorBase& iter, const at::Scalar& weight) {
  MUSA_DISPATCH(iter.common_dtype(), "lerp", (MUSA_FLOATING_AND_COMPLEX), {
    const op_t share = weight.to<op_t>();
    // Interpolates from the nearer end, as torch does, so that a weight of 1 returns the end exactly.
    const op_t step = at::native::is_lerp_weight_small(share) ? share : share - op_t(1);
    pointwise(iter, [share, step] __host__ __device__(scalar_t begin, scalar_t end) -> scalar_t {
      using op_t = at::opmath_type<scalar_t>;
      const op_t first = op_t(begin), last = op_t(end);
      return static_cast<scalar_t>((step == share ? first : last) + step * (last - first));
    });
  });
}
void lerp_tensor(at::TensorIteratorBase& iter) {
  MUSA_DISPATCH(iter.common_dtype(), "lerp", (MUSA_FLOATING_AND_COMPLEX), {
    pointwise(iter, [] __host__ __device__(scalar_t begin, scalar_t end, scalar_t weight) -> scalar_t {
      using op_t = at::opmath_type<scalar_t>;
      return static_cast<scalar_t>(at::native::lerp(op_t(begin), op_t(end), op_t(weight)));
    });
  });
}

// ---- gradients of losses; operand order: input, target, gradient

void mse_backward(at::TensorIterator& iter, const at::Scalar& value) {
  MUSA_DISPATCH(iter.dtype(), "mse_backward", (MUSA_FLOATING), {
    const op_t factor = value.to<op_t>();
    pointwise(iter, [factor] __host__ __device__(scalar_t x, scalar_t y, scalar_t gradient) -> scalar_t {
      using op_t = at::opmath_type<scalar_t>;
      return static_cast<scalar_t>(factor * (op_t(x) - op_t(y)) * op_t(gradient));
    });
  });
}

void smooth_l1_backward(at::TensorIterator& iter, const at::Scalar& norm, double beta) {
  MUSA_DISPATCH(iter.dtype(), "smooth_l1_backward", (MUSA_FLOATING), {
    const op_t factor = norm.to<op_t>();
    const op_t width = static_cast<op_t>(beta);
    pointwise(
        iter, [factor, width] __host__ __device__(scalar_t input, scalar_t target, scalar_t gradient) -> scalar_t {
          using op_t = at::opmath_type<scalar_t>;
          const op_t x = op_t(input) - op_t(target);
          const op_t slope = x <= -width ? op_t(-1) : x >= width ? op_t(1) : x / width;
          return static_cast<scalar_t>(factor * slope * op_t(gradient));
        });
  });
}

void huber_backward(at::TensorIterator& iter, const at::Scalar& norm, double delta) {
  MUSA_DISPATCH(iter.dtype(), "huber_backward", (MUSA_FLOATING), {
    const op_t factor = norm.to<op_t>();
    const op_t width = static_cast<op_t>(delta);
    pointwise(
        iter, [factor, width] __host__ __device__(scalar_t input, scalar_t target, scalar_t gradient) -> scalar_t {
          using op_t = at::opmath_type<scalar_t>;
          const op_t x = op_t(input) - op_t(target);
          const op_t slope = x < -width ? -width : x > width ? width : x;
          return static_cast<scalar_t>(factor * slope * op_t(gradient));
        });
  });
}

// ---- gradients of activations with several operands

void glu_backward(at::TensorIterator& iter) {
  MUSA_DISPATCH(iter.dtype(), "glu_backward", (MUSA_FLOATING), {
    // Gradient of the gate. Operands: sigmoid of the second half, first half of the input, incoming gradient.
    pointwise(iter, [] __host__ __device__(scalar_t sigma, scalar_t first, scalar_t gradient) -> scalar_t {
      using op_t = at::opmath_type<scalar_t>;
      const op_t s = sigma;
      return static_cast<scalar_t>((op_t(1) - s) * s * op_t(gradient) * op_t(first));
    });
  });
}

void prelu_backward(at::TensorIterator& iter) {
  MUSA_DISPATCH(iter.dtype(0), "prelu_backward", (MUSA_FLOATING), {
    pointwise_pair(
        iter, [] __host__ __device__(scalar_t x, scalar_t weight, scalar_t gradient) -> std::pair<scalar_t, scalar_t> {
          using op_t = at::opmath_type<scalar_t>;
          const bool passes = op_t(x) > op_t(0);
          return {
              passes ? gradient : static_cast<scalar_t>(op_t(weight) * op_t(gradient)),
              passes ? scalar_t(0) : static_cast<scalar_t>(op_t(x) * op_t(gradient))};
        });
  });
}

// ---- parts of complex numbers

void frexp(at::TensorIteratorBase& iter) {
  MUSA_DISPATCH(iter.dtype(0), "frexp", (MUSA_FLOATING), {
    pointwise_pair(iter, [] __host__ __device__(scalar_t x) -> std::pair<scalar_t, int32_t> {
      int exponent = 0;
      const auto mantissa = static_cast<scalar_t>(std::frexp(at::opmath_type<scalar_t>(x), &exponent));
      return {mantissa, exponent};
    });
  });
}

void complex(at::TensorIterator& iter) {
  MUSA_DISPATCH(iter.input_dtype(0), "complex", (AT_EXPAND(AT_FLOATING_TYPES), at::kHalf), {
    pointwise(iter, [] __host__ __device__(scalar_t real, scalar_t imaginary) -> c10::complex<scalar_t> {
      return c10::complex<scalar_t>(real, imaginary);
    });
  });
}

void polar(at::TensorIterator& iter) {
  MUSA_DISPATCH(iter.input_dtype(0), "polar", (AT_EXPAND(AT_FLOATING_TYPES)), {
    pointwise(iter, [] __host__ __device__(scalar_t length, scalar_t angle) -> c10::complex<scalar_t> {
      return c10::complex<scalar_t>(length * std::cos(angle), length * std::sin(angle));
    });
  });
}

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(addcmul_stub, &musa_ops_ported::addcmul)
REGISTER_PRIVATEUSE1_DISPATCH(addcdiv_stub, &musa_ops_ported::addcdiv)
REGISTER_PRIVATEUSE1_DISPATCH(lerp_kernel_scalar_weight, &musa_ops_ported::lerp_scalar)
REGISTER_PRIVATEUSE1_DISPATCH(lerp_kernel_tensor_weight, &musa_ops_ported::lerp_tensor)
REGISTER_PRIVATEUSE1_DISPATCH(mse_backward_stub, &musa_ops_ported::mse_backward)
REGISTER_PRIVATEUSE1_DISPATCH(smooth_l1_backward_stub, &musa_ops_ported::smooth_l1_backward)
REGISTER_PRIVATEUSE1_DISPATCH(huber_backward_stub, &musa_ops_ported::huber_backward)
REGISTER_PRIVATEUSE1_DISPATCH(glu_backward_stub, &musa_ops_ported::glu_backward)
REGISTER_PRIVATEUSE1_DISPATCH(prelu_backward_stub, &musa_ops_ported::prelu_backward)
REGISTER_PRIVATEUSE1_DISPATCH(frexp_stub, &musa_ops_ported::frexp)
REGISTER_PRIVATEUSE1_DISPATCH(complex_stub, &musa_ops_ported::complex)
REGISTER_PRIVATEUSE1_DISPATCH(polar_stub, &musa_ops_ported::polar)
} // namespace at::native
