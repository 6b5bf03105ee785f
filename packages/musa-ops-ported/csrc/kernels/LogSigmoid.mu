// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/pointwise.muh"
#include "kernels/LogSigmoid.h"

namespace musa_ops_ported {
namespace {

// The exponent is never positive, so exp cannot overflow.
template <typename T>
void log_sigmoid(at::TensorIteratorBase& iter) {
  pointwise(iter, [] __host__ __device__(T value) -> T {
    using Real = at::opmath_type<T>;
    const Real x = value;
    const Real smaller = x > Real(0) ? Real(0) : x;
    return static_cast<T>(smaller - std::log1p(std::exp(-std::abs(x))));
  });
}

// The derivative is sigmoid(-x).
template <typename T>
void log_sigmoid_gradient(at::TensorIteratorBase& iter) {
  pointwise(iter, [] __host__ __device__(T gradient, T value) -> T {
    using Real = at::opmath_type<T>;
    const Real x = value;
    const Real z = std::exp(-std::abs(x));
    return static_cast<T>(static_cast<Real>(gradient) * (x < Real(0) ? Real(1) : z) / (Real(1) + z));
  });
}

void gradient_into(at::TensorIteratorBase& iter) {
  MUSA_DISPATCH(
      iter.common_dtype(), "log_sigmoid_backward", (MUSA_FLOATING), { log_sigmoid_gradient<scalar_t>(iter); });
}

} // namespace

// The buffer is used on the CPU only.
std::tuple<at::Tensor&, at::Tensor&> log_sigmoid_forward_output(
    const at::Tensor& self, at::Tensor& output, at::Tensor& buffer) {
  auto iter = at::TensorIterator::unary_op(output, self);
  MUSA_DISPATCH(iter.common_dtype(), "log_sigmoid_forward", (MUSA_FLOATING), { log_sigmoid<scalar_t>(iter); });
  return {output, buffer};
}

std::tuple<at::Tensor, at::Tensor> log_sigmoid_forward(const at::Tensor& self) {
  at::Tensor output;
  auto iter = at::TensorIterator::unary_op(output, self);
  MUSA_DISPATCH(iter.common_dtype(), "log_sigmoid_forward", (MUSA_FLOATING), { log_sigmoid<scalar_t>(iter); });
  return {iter.output(), aten::empty({0}, self.options())};
}

at::Tensor& log_sigmoid_backward_grad_input(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor&, at::Tensor& grad_input) {
  auto iter = at::TensorIterator::binary_op(grad_input, grad_output, self);
  gradient_into(iter);
  return grad_input;
}

at::Tensor log_sigmoid_backward(const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor&) {
  at::Tensor grad_input;
  auto iter = at::TensorIterator::binary_op(grad_input, grad_output, self);
  gradient_into(iter);
  return iter.output();
}

} // namespace musa_ops_ported
