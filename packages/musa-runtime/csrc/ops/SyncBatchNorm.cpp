// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/var_mean.h>
#include <musa_runtime/argument_checks.h>
#include <musa_runtime/op_pack.h>

#include <numeric>

// The operators of nn.SyncBatchNorm, which torch implements for GPUs only. Statistics are per channel (dimension 1) over
// all other dimensions; invstd = 1 / sqrt(biased variance + eps). Formulas: Ioffe and Szegedy 2015, with the sums exchanged
// between processes by the module.

namespace musa_runtime {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

// Half-precision inputs are accumulated in float, as the statistics are exchanged in float.
at::ScalarType statistics_dtype(const Tensor& input) {
  return input.scalar_type() == at::kHalf || input.scalar_type() == at::kBFloat16 ? at::kFloat : input.scalar_type();
}

std::vector<int64_t> all_but_channels(const Tensor& input) {
  std::vector<int64_t> dims(input.dim());
  std::iota(dims.begin(), dims.end(), 0);
  dims.erase(dims.begin() + 1);
  return dims;
}

Tensor per_channel(const Tensor& values, const Tensor& input) {
  std::vector<int64_t> shape(input.dim(), 1);
  shape[1] = values.size(0);
  return values.view(shape);
}

std::tuple<Tensor, Tensor> batch_norm_stats(const Tensor& input, double eps) {
  check_least_dims("batch_norm_stats", "input", input, 2);
  const Tensor values = input.to(statistics_dtype(input));
  auto [variance, mean] = at::var_mean(values, at::IntArrayRef(all_but_channels(input)), /*correction=*/0, false);
  return {std::move(mean), at::rsqrt(variance + eps)};
}

Tensor batch_norm_elemt(
    const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias, const Tensor& mean,
    const Tensor& invstd, double /*eps*/) {
  const char* const op = "batch_norm_elemt";
  check_least_dims(op, "input", input, 2);
  check_shape(op, "mean", mean, {input.size(1)});
  check_shape(op, "invstd", invstd, {input.size(1)});
  check_shape(op, "weight", weight, {input.size(1)});
  check_shape(op, "bias", bias, {input.size(1)});
  Tensor result = (input.to(statistics_dtype(input)) - per_channel(mean, input)) * per_channel(invstd, input);
  if (weight.has_value() && weight->defined()) {
    result = result * per_channel(*weight, input);
  }
  if (bias.has_value() && bias->defined()) {
    result = result + per_channel(*bias, input);
  }
  return result.to(input.scalar_type());
}

// Joins the statistics of several processes: mean and invstd are (processes, channels), counts is (processes).
std::tuple<Tensor, Tensor> join_statistics(
    const Tensor& /*input*/, const Tensor& mean, const Tensor& invstd, const OptionalTensor& running_mean,
    const OptionalTensor& running_var, double momentum, double eps, const Tensor& counts) {
  const char* const op = "batch_norm_gather_stats";
  check_dims(op, "mean", mean, 2);
  check_shape(op, "invstd", invstd, mean.sizes());
  check_count(op, "counts", counts, mean.size(0));
  check_shape(op, "running_mean", running_mean, {mean.size(1)});
  check_shape(op, "running_var", running_var, {mean.size(1)});
  const Tensor weights = counts.to(mean.scalar_type()).view({-1, 1});
  const Tensor total = weights.sum();
  Tensor joined_mean = (mean * weights).sum(0) / total;
  const Tensor variance = invstd.pow(-2) - eps;
  const Tensor deviation = mean - joined_mean;
  const Tensor joined_variance = ((variance + deviation * deviation) * weights).sum(0) / total;
  if (running_mean.has_value() && running_mean->defined()) {
    running_mean->mul_(1 - momentum).add_(joined_mean.to(running_mean->scalar_type()), momentum);
  }
  if (running_var.has_value() && running_var->defined()) {
    const Tensor unbiased = joined_variance * (total / (total - 1));
    running_var->mul_(1 - momentum).add_(unbiased.to(running_var->scalar_type()), momentum);
  }
  return {std::move(joined_mean), at::rsqrt(joined_variance + eps)};
}

std::tuple<Tensor, Tensor> batch_norm_gather_stats(
    const Tensor& input, const Tensor& mean, const Tensor& invstd, const OptionalTensor& running_mean,
    const OptionalTensor& running_var, double momentum, double eps, int64_t count) {
  const Tensor counts = at::full({mean.size(0)}, static_cast<double>(count), mean.options());
  return join_statistics(input, mean, invstd, running_mean, running_var, momentum, eps, counts);
}

// Returns (sum of dy, sum of dy * (x - mean), gradient of weight, gradient of bias), each per channel.
std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_backward_reduce(
    const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& invstd, const OptionalTensor& weight,
    bool input_g, bool weight_g, bool bias_g) {
  const char* const op = "batch_norm_backward_reduce";
  check_least_dims(op, "input", input, 2);
  check_shape(op, "grad_out", grad_out, input.sizes());
  check_shape(op, "mean", mean, {input.size(1)});
  check_shape(op, "invstd", invstd, {input.size(1)});
  check_shape(op, "weight", weight, {input.size(1)});
  const at::ScalarType dtype = statistics_dtype(input);
  const auto dims = all_but_channels(input);
  const Tensor gradient = grad_out.to(dtype);
  Tensor sum_dy = gradient.sum(dims);
  Tensor sum_dy_xmu = (gradient * (input.to(dtype) - per_channel(mean, input))).sum(dims);
  const at::ScalarType parameter_dtype =
      weight.has_value() && weight->defined() ? weight->scalar_type() : mean.scalar_type();
  Tensor grad_weight = weight_g ? (sum_dy_xmu * invstd).to(parameter_dtype) : Tensor();
  Tensor grad_bias = bias_g ? sum_dy.to(parameter_dtype) : Tensor();
  return {
      input_g ? std::move(sum_dy) : Tensor(), input_g ? std::move(sum_dy_xmu) : Tensor(), std::move(grad_weight),
      std::move(grad_bias)};
}

Tensor batch_norm_backward_elemt(
    const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& invstd, const OptionalTensor& weight,
    const Tensor& sum_dy, const Tensor& sum_dy_xmu, const Tensor& count) {
  const char* const op = "batch_norm_backward_elemt";
  check_least_dims(op, "input", input, 2);
  check_shape(op, "grad_out", grad_out, input.sizes());
  check_shape(op, "mean", mean, {input.size(1)});
  check_shape(op, "invstd", invstd, {input.size(1)});
  check_shape(op, "weight", weight, {input.size(1)});
  check_shape(op, "sum_dy", sum_dy, {input.size(1)});
  check_shape(op, "sum_dy_xmu", sum_dy_xmu, {input.size(1)});
  const at::ScalarType dtype = statistics_dtype(input);
  const Tensor total = count.sum().to(dtype);
  const Tensor mean_dy = per_channel(sum_dy / total, input);
  const Tensor mean_dy_xmu = per_channel(sum_dy_xmu / total, input);
  const Tensor scale = per_channel(invstd, input);
  const Tensor centred = input.to(dtype) - per_channel(mean, input);
  Tensor result = (grad_out.to(dtype) - mean_dy - centred * scale * scale * mean_dy_xmu) * scale;
  if (weight.has_value() && weight->defined()) {
    result = result * per_channel(*weight, input);
  }
  return result.to(input.scalar_type());
}

MUSA_OP_PACK(runtime, pack) {
  pack.impl("aten::batch_norm_stats", TORCH_FN(batch_norm_stats))
      .impl("aten::batch_norm_elemt", TORCH_FN(batch_norm_elemt))
      .impl("aten::batch_norm_gather_stats", TORCH_FN(batch_norm_gather_stats))
      .impl("aten::batch_norm_gather_stats_with_counts", TORCH_FN(join_statistics))
      .impl("aten::batch_norm_backward_reduce", TORCH_FN(batch_norm_backward_reduce))
      .impl("aten::batch_norm_backward_elemt", TORCH_FN(batch_norm_backward_elemt));
}

} // namespace
} // namespace musa_runtime
