// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/ops/leaky_relu.h>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "engines/random.muh"
#include "kernels/RreluWithNoise.h"

namespace musa_ops_ported {
namespace {

// Multiplies negative values by a random slope per element. `noise` stores the slopes, and 1 for other values.
void draw_slopes(
    const at::Tensor& self, const at::Tensor& noise, double lower, double upper,
    const std::optional<at::Generator>& generator, const at::Tensor& out) {
  const at::Tensor in = self.contiguous();
  const at::Tensor slopes = noise.is_contiguous() ? noise : aten::empty_like(noise, at::MemoryFormat::Contiguous);
  const at::Tensor result = out.is_contiguous() ? out : aten::empty_like(out, at::MemoryFormat::Contiguous);
  MUSA_DISPATCH(self.scalar_type(), "rrelu_with_noise", (MUSA_FLOATING), {
    using Draw = UniformNumbers<op_t>;
    const scalar_t* const from = in.const_data_ptr<scalar_t>();
    scalar_t* const kept = slopes.mutable_data_ptr<scalar_t>();
    scalar_t* const to = result.mutable_data_ptr<scalar_t>();
    const op_t low = static_cast<op_t>(lower), range = static_cast<op_t>(upper - lower);
    draw_elements<Draw::count>(in.numel(), generator, Draw(), [=] __device__(int64_t i, op_t number) {
      const op_t x = static_cast<op_t>(from[i]);
      const op_t slope = x <= 0 ? low + number * range : op_t(1);
      kept[i] = static_cast<scalar_t>(slope);
      to[i] = static_cast<scalar_t>(x * slope);
    });
  });
  if (!slopes.is_same(noise)) {
    noise.copy_(slopes);
  }
  if (!result.is_same(out)) {
    out.copy_(result);
  }
}

} // namespace

at::Tensor& rrelu_with_noise_out(
    const at::Tensor& self, at::Tensor& noise, const at::Scalar& lower, const at::Scalar& upper, bool training,
    std::optional<at::Generator> generator, at::Tensor& out) {
  const double low = lower.toDouble(), high = upper.toDouble();
  TORCH_CHECK(
      self.sizes() == noise.sizes(), "noise must have the sizes of self, ", self.sizes(), ", got ", noise.sizes());
  TORCH_CHECK(
      self.scalar_type() == out.scalar_type() && self.scalar_type() == noise.scalar_type(),
      "rrelu_with_noise: self, noise and out must have one dtype, got ", self.scalar_type(), ", ", noise.scalar_type(),
      " and ", out.scalar_type());
  if (!training) {
    return at::leaky_relu_out(out, self, (low + high) / 2);
  }
  TORCH_CHECK(low <= high, "Lower bound should be less than or equal to the upper bound");
  TORCH_CHECK(std::isfinite(low), "lower bound must be finite, but got ", low);
  TORCH_CHECK(std::isfinite(high), "upper bound must be finite, but got ", high);
  aten::resize_output(out, self.sizes());
  draw_slopes(self, noise, low, high, generator, out);
  return out;
}
at::Tensor rrelu_with_noise(
    const at::Tensor& self, at::Tensor& noise, const at::Scalar& lower, const at::Scalar& upper, bool training,
    std::optional<at::Generator> generator) {
  at::Tensor out = aten::empty_like(self);
  return rrelu_with_noise_out(self, noise, lower, upper, training, std::move(generator), out);
}
at::Tensor& rrelu_with_noise_(
    at::Tensor& self, at::Tensor& noise, const at::Scalar& lower, const at::Scalar& upper, bool training,
    std::optional<at::Generator> generator) {
  return rrelu_with_noise_out(self, noise, lower, upper, training, std::move(generator), self);
}

} // namespace musa_ops_ported
