// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Batch norm in training mode, and its gradients, with cuDNN.
#include <mudnn_backend/lending.h>

#include <limits>
#include <tuple>

namespace musa_emulator::dnn {
namespace {

constexpr int64_t kMostSamples = 880801; // largest batch that cuDNN supports

bool serves(const at::Tensor& in, const at::Tensor& other, const at::Tensor& weight, double epsilon) {
  const auto type = in.scalar_type();
  return at::globalContext().userEnabledCuDNN() && (type == at::kFloat || type == at::kHalf) && in.dim() >= 3 &&
      in.dim() <= 5 && in.size(0) <= kMostSamples && in.numel() > in.size(1) &&
      in.numel() <= std::numeric_limits<int32_t>::max() && in.is_contiguous() && other.is_contiguous() &&
      in.suggest_memory_format() == at::MemoryFormat::Contiguous && weight.defined() &&
      weight.scalar_type() == at::kFloat && epsilon >= 0;
}

} // namespace

bool batch_norm_into(
    at::Tensor& out, const at::Tensor& in, const at::Tensor& weight, const at::Tensor& bias,
    const at::Tensor& running_mean, const at::Tensor& running_variance, at::Tensor& mean, at::Tensor& deviation,
    double momentum, double epsilon) {
  if (!serves(in, out, weight, epsilon) || !bias.defined() || bias.scalar_type() != at::kFloat ||
      !running_mean.defined() || !running_variance.defined()) {
    return false;
  }
  at::Tensor reserve = new_tensor({0}, at::kByte); // torch replaces it; it stays empty in this dimension order
  at::cudnn_batch_norm_out(
      out, mean, deviation, reserve, in, weight, bias, running_mean, running_variance, /*training=*/true, momentum,
      epsilon);
  return true;
}

bool batch_norm_gradients(
    at::Tensor& of_input, at::Tensor& of_weight, at::Tensor& of_bias, const at::Tensor& gradient, const at::Tensor& in,
    const at::Tensor& weight, const at::Tensor& mean, const at::Tensor& deviation, double epsilon) {
  if (!serves(in, gradient, weight, epsilon) || gradient.scalar_type() != in.scalar_type()) {
    return false;
  }
  const at::Tensor reserve = new_tensor({0}, at::kByte); // see batch_norm_into
  std::tie(of_input, of_weight, of_bias) =
      at::cudnn_batch_norm_backward(in, gradient, weight, {}, {}, mean, deviation, epsilon, reserve);
  return true;
}

} // namespace musa_emulator::dnn
