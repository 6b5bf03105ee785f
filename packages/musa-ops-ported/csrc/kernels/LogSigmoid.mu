// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "engines/dispatch.h"
#include "engines/pointwise.muh"
#include "kernels.h"

namespace musa_ops_ported {
namespace {

// The exponent is never positive, so that nothing overflows.
template <typename T>
void log_sigmoid(at::TensorIteratorBase& iter) {
  pointwise(iter, [] __device__(T value) -> T {
    using Real = at::opmath_type<T>;
    const Real x = value;
    const Real smaller = x > Real(0) ? Real(0) : x;
    return static_cast<T>(smaller - std::log1p(std::exp(-std::abs(x))));
  });
}

} // namespace

// The buffer is of use to the CPU alone.
std::tuple<at::Tensor&, at::Tensor&> log_sigmoid_forward_output(const at::Tensor& self, at::Tensor& output, at::Tensor& buffer) {
  auto iter = at::TensorIterator::unary_op(output, self);
  MUSA_DISPATCH(iter.common_dtype(), "log_sigmoid_forward", (MUSA_FLOATING), { log_sigmoid<scalar_t>(iter); });
  return {output, buffer};
}

std::tuple<at::Tensor, at::Tensor> log_sigmoid_forward(const at::Tensor& self) {
  at::Tensor output;
  auto iter = at::TensorIterator::unary_op(output, self);
  MUSA_DISPATCH(iter.common_dtype(), "log_sigmoid_forward", (MUSA_FLOATING), { log_sigmoid<scalar_t>(iter); });
  return {iter.output(), at::empty({0}, self.options())};
}

} // namespace musa_ops_ported
