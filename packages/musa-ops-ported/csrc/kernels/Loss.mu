// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Binary cross entropy. Logarithms are clamped to -100, so that the loss of a confident wrong prediction is finite.
#include <ATen/TensorIterator.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/optional.h"
#include "engines/pointwise.muh"
#include "kernels/Loss.h"

namespace musa_ops_ported {
namespace {

template <typename T>
void losses(at::TensorIteratorBase& iter) {
  pointwise(iter, [] __host__ __device__(T input, T target) -> T {
    using Real = at::opmath_type<T>;
    const Real x = input, t = target;
    CUDA_KERNEL_ASSERT(x >= Real(0) && x <= Real(1) && "the input of binary cross entropy must be in [0, 1]");
    const Real yes = std::log(x), no = std::log1p(-x);
    const Real least = -100;
    return static_cast<T>((t - Real(1)) * (no > least ? no : least) - t * (yes > least ? yes : least));
  });
}

template <typename T>
void gradients(at::TensorIteratorBase& iter) {
  pointwise(iter, [] __host__ __device__(T gradient, T input, T target) -> T {
    using Real = at::opmath_type<T>;
    const Real x = input, t = target;
    const Real smallest = 1e-12;
    const Real spread = (Real(1) - x) * x;
    return static_cast<T>(Real(gradient) * (x - t) / (spread > smallest ? spread : smallest));
  });
}

at::Tensor losses_of(const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight) {
  TORCH_CHECK(
      self.sizes() == target.sizes(), "Using a target size (", target.sizes(),
      ") that is different to the input size (", self.sizes(),
      ") is deprecated. Please ensure they have the same size.");
  at::Tensor loss;
  auto iter = at::TensorIteratorConfig().add_output(loss).add_const_input(self).add_const_input(target).build();
  MUSA_DISPATCH(iter.common_dtype(), "binary_cross_entropy", (MUSA_FLOATING), { losses<scalar_t>(iter); });
  loss = iter.output();
  if (weight.has_value() && weight->defined()) {
    loss.mul_(*weight);
  }
  return loss;
}

at::Tensor gradients_of(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target,
    const std::optional<at::Tensor>& weight, int64_t reduction) {
  at::Tensor gradient;
  const at::Tensor incoming = grad_output.expand_as(self);
  auto iter = at::TensorIteratorConfig()
                  .add_output(gradient)
                  .add_const_input(incoming)
                  .add_const_input(self)
                  .add_const_input(target)
                  .build();
  MUSA_DISPATCH(iter.common_dtype(), "binary_cross_entropy_backward", (MUSA_FLOATING), { gradients<scalar_t>(iter); });
  gradient = iter.output();
  if (weight.has_value() && weight->defined()) {
    gradient.mul_(*weight);
  }
  if (reduction == at::Reduction::Mean) {
    gradient.div_(self.numel());
  }
  return gradient;
}

} // namespace

at::Tensor binary_cross_entropy(
    const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight, int64_t reduction) {
  const at::Tensor loss = losses_of(self, target, weight);
  return reduction == at::Reduction::Mean ? loss.mean() : reduction == at::Reduction::Sum ? loss.sum() : loss;
}

at::Tensor& binary_cross_entropy_out(
    const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight, int64_t reduction,
    at::Tensor& out) {
  const at::Tensor loss = musa_ops_ported::binary_cross_entropy(self, target, weight, reduction);
  aten::resize_output(out, loss.sizes());
  return out.copy_(loss);
}

at::Tensor binary_cross_entropy_backward(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target,
    const std::optional<at::Tensor>& weight, int64_t reduction) {
  return gradients_of(grad_output, self, target, weight, reduction);
}

at::Tensor& binary_cross_entropy_backward_grad_input(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target,
    const std::optional<at::Tensor>& weight, int64_t reduction, at::Tensor& grad_input) {
  const at::Tensor gradient = gradients_of(grad_output, self, target, weight, reduction);
  aten::resize_output(grad_input, gradient.sizes());
  return grad_input.copy_(gradient);
}

} // namespace musa_ops_ported
