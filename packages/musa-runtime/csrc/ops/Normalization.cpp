// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <musa_runtime/host/statistics_in_16_bits.h>
#include <musa_runtime/op_pack.h>

namespace musa_runtime {
// The compositions. The calls in float32 are dispatched again, so any provider may serve them.
namespace norm_in_float {
namespace {

using at::Tensor;
using statistics_in_16_bits::Optional;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;
using ThreeGiven = std::tuple<Tensor&, Tensor&, Tensor&>;
using FourGiven = std::tuple<Tensor&, Tensor&, Tensor&, Tensor&>;

Tensor converted(const Tensor& tensor, at::ScalarType dtype) { return tensor.defined() ? tensor.to(dtype) : tensor; }
Tensor in_float(const Tensor& tensor) { return converted(tensor, at::kFloat); }
Optional in_float(const Optional& tensor) {
  return tensor.has_value() ? std::make_optional(in_float(*tensor)) : std::nullopt;
}

// The dtype of a parameter's gradient: the parameter's, or the input's if there is none.
at::ScalarType dtype_of(const Optional& parameter, const Tensor& input) {
  return (parameter.has_value() && parameter->defined() ? *parameter : input).scalar_type();
}

Three layer_norm(
    const Tensor& input, at::IntArrayRef normalized_shape, const Optional& weight, const Optional& bias, double eps) {
  auto [out, mean, rstd] =
      at::native_layer_norm(in_float(input), normalized_shape, in_float(weight), in_float(bias), eps);
  return {out.to(input.scalar_type()), std::move(mean), std::move(rstd)};
}

Three layer_norm_backward(
    const Tensor& grad_out, const Tensor& input, at::IntArrayRef normalized_shape, const Tensor& mean,
    const Tensor& rstd, const Optional& weight, const Optional& bias, std::array<bool, 3> output_mask) {
  const auto [grad_input, grad_weight, grad_bias] = at::native_layer_norm_backward(
      in_float(grad_out), in_float(input), normalized_shape, in_float(mean), in_float(rstd), in_float(weight),
      in_float(bias), output_mask);
  return {
      converted(grad_input, input.scalar_type()), converted(grad_weight, dtype_of(weight, input)),
      converted(grad_bias, dtype_of(bias, input))};
}

Three batch_norm(
    const Tensor& input, const Optional& weight, const Optional& bias, const Optional& running_mean,
    const Optional& running_var, bool training, double momentum, double eps) {
  const Optional average = in_float(running_mean);
  const Optional variance = in_float(running_var);
  auto [out, mean, invstd] = at::native_batch_norm(
      in_float(input), in_float(weight), in_float(bias), average, variance, training, momentum, eps);
  if (training) {
    for (const auto& [target, updated] : {std::tie(running_mean, average), std::tie(running_var, variance)}) {
      if (target.has_value() && target->defined() && !target->is_same(*updated)) {
        target->copy_(*updated);
      }
    }
  }
  return {out.to(input.scalar_type()), std::move(mean), std::move(invstd)};
}

ThreeGiven batch_norm_out(
    const Tensor& input, const Optional& weight, const Optional& bias, const Optional& running_mean,
    const Optional& running_var, bool training, double momentum, double eps, Tensor& out, Tensor& save_mean,
    Tensor& save_invstd) {
  TORCH_CHECK(
      out.scalar_type() == input.scalar_type(), "Expected out tensor to have dtype ", input.scalar_type(), ", but got ",
      out.scalar_type(), " instead");
  const auto [normalized, mean, invstd] =
      batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
  for (const auto& [made, target] :
       {std::tie(normalized, out), std::tie(mean, save_mean), std::tie(invstd, save_invstd)}) {
    at::native::resize_output(target, made.sizes());
    target.copy_(made);
  }
  return {out, save_mean, save_invstd};
}

Three legit(
    const Tensor& input, const Optional& weight, const Optional& bias, Tensor& running_mean, Tensor& running_var,
    bool training, double momentum, double eps) {
  return batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
}

ThreeGiven legit_out(
    const Tensor& input, const Optional& weight, const Optional& bias, Tensor& running_mean, Tensor& running_var,
    bool training, double momentum, double eps, Tensor& out, Tensor& save_mean, Tensor& save_invstd) {
  return batch_norm_out(
      input, weight, bias, running_mean, running_var, training, momentum, eps, out, save_mean, save_invstd);
}

Three no_stats(
    const Tensor& input, const Optional& weight, const Optional& bias, bool training, double momentum, double eps) {
  return batch_norm(input, weight, bias, std::nullopt, std::nullopt, training, momentum, eps);
}

ThreeGiven no_stats_out(
    const Tensor& input, const Optional& weight, const Optional& bias, bool training, double momentum, double eps,
    Tensor& out, Tensor& save_mean, Tensor& save_invstd) {
  return batch_norm_out(
      input, weight, bias, std::nullopt, std::nullopt, training, momentum, eps, out, save_mean, save_invstd);
}

Three no_training(
    const Tensor& input, const Optional& weight, const Optional& bias, const Tensor& running_mean,
    const Tensor& running_var, double momentum, double eps) {
  return batch_norm(input, weight, bias, running_mean, running_var, /*training=*/false, momentum, eps);
}

bool no_training_served(
    const Tensor& input, const Optional& weight, const Optional& bias, const Tensor& running_mean,
    const Tensor& running_var, double /*momentum*/, double /*eps*/) {
  return statistics_in_16_bits::in_16_bits(input, weight, bias, running_mean, running_var);
}

// The fourth result is the reserve space that cuDNN saves for the backward pass; it is empty here.
Four with_update(
    const Tensor& input, const Optional& weight, const Optional& bias, Tensor& running_mean, Tensor& running_var,
    double momentum, double eps) {
  auto [out, mean, invstd] =
      batch_norm(input, weight, bias, running_mean, running_var, /*training=*/true, momentum, eps);
  return {std::move(out), std::move(mean), std::move(invstd), at::empty({0}, input.options().dtype(at::kByte))};
}

FourGiven with_update_out(
    const Tensor& input, const Optional& weight, const Optional& bias, Tensor& running_mean, Tensor& running_var,
    double momentum, double eps, Tensor& out, Tensor& save_mean, Tensor& save_invstd, Tensor& reserve) {
  batch_norm_out(
      input, weight, bias, running_mean, running_var, /*training=*/true, momentum, eps, out, save_mean, save_invstd);
  at::native::resize_output(reserve, {0});
  return {out, save_mean, save_invstd, reserve};
}

Three batch_norm_backward(
    const Tensor& grad_out, const Tensor& input, const Optional& weight, const Optional& running_mean,
    const Optional& running_var, const Optional& save_mean, const Optional& save_invstd, bool train, double eps,
    std::array<bool, 3> output_mask) {
  const auto [grad_input, grad_weight, grad_bias] = at::native_batch_norm_backward(
      in_float(grad_out), in_float(input), in_float(weight), in_float(running_mean), in_float(running_var),
      in_float(save_mean), in_float(save_invstd), train, eps, output_mask);
  const at::ScalarType dtype = dtype_of(weight, input);
  return {converted(grad_input, input.scalar_type()), converted(grad_weight, dtype), converted(grad_bias, dtype)};
}

Three batch_norm_backward_with_reserve(
    const Tensor& grad_out, const Tensor& input, const Tensor& weight, const Optional& running_mean,
    const Optional& running_var, const Optional& save_mean, const Optional& save_var, bool update, double eps,
    std::array<bool, 3> output_mask, const Tensor& /*reserve*/) {
  return batch_norm_backward(
      grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps, output_mask);
}

MUSA_OP_PACK(runtime, pack) {
  namespace served = statistics_in_16_bits;
  pack.impl("aten::native_layer_norm", TORCH_FN(layer_norm), TORCH_FN(served::native_layer_norm))
      .impl(
          "aten::native_layer_norm_backward", TORCH_FN(layer_norm_backward),
          TORCH_FN(served::native_layer_norm_backward))
      .impl("aten::native_batch_norm", TORCH_FN(batch_norm), TORCH_FN(served::native_batch_norm))
      .impl("aten::native_batch_norm.out", TORCH_FN(batch_norm_out), TORCH_FN(served::native_batch_norm_out))
      .impl("aten::_native_batch_norm_legit", TORCH_FN(legit), TORCH_FN(served::_native_batch_norm_legit))
      .impl("aten::_native_batch_norm_legit.out", TORCH_FN(legit_out), TORCH_FN(served::_native_batch_norm_legit_out))
      .impl(
          "aten::_native_batch_norm_legit.no_stats", TORCH_FN(no_stats),
          TORCH_FN(served::_native_batch_norm_legit_no_stats))
      .impl(
          "aten::_native_batch_norm_legit.no_stats_out", TORCH_FN(no_stats_out),
          TORCH_FN(served::_native_batch_norm_legit_no_stats_out))
      .impl("aten::_native_batch_norm_legit_no_training", TORCH_FN(no_training), TORCH_FN(no_training_served))
      .impl("aten::_batch_norm_with_update", TORCH_FN(with_update), TORCH_FN(served::_batch_norm_with_update))
      .impl(
          "aten::_batch_norm_with_update.out", TORCH_FN(with_update_out), TORCH_FN(served::_batch_norm_with_update_out))
      .impl(
          "aten::native_batch_norm_backward", TORCH_FN(batch_norm_backward),
          TORCH_FN(served::native_batch_norm_backward))
      .impl(
          "aten::batch_norm_backward", TORCH_FN(batch_norm_backward_with_reserve),
          TORCH_FN(served::batch_norm_backward));
}

} // namespace
} // namespace norm_in_float
} // namespace musa_runtime
