// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Batch, layer, group and RMS normalization.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>

#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <vector>

#include "families.h"
#include "support/call.h"
#include "support/elementwise.h"
#include "support/structured.h"

namespace musa_ops_mudnn {
namespace {

using at::IntArrayRef;
using at::Tensor;
using Optional = std::optional<Tensor>;
using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;
using ThreeGiven = std::tuple<Tensor&, Tensor&, Tensor&>;
using FourGiven = std::tuple<Tensor&, Tensor&, Tensor&, Tensor&>;

Operand dense_in(const Optional& tensor, at::ScalarType dtype) {
  return given(tensor) ? contiguous(in_dtype(*tensor, dtype)) : Operand(Tensor());
}

// muDNN stores the statistics of 16-bit inputs in FLOAT. Except for group norm, they are saved so, as by torch.cuda.
at::ScalarType statistics_dtype(const Tensor& input) {
  return input.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

// Returns the dtype of weight, bias and running statistics: the input's dtype or, for 16-bit inputs, FLOAT. The
// gradients of weight and bias have this dtype too. Returns Undefined for other mixtures, which torch's CPU kernels do
// not support either.
at::ScalarType parameter_dtype(const Tensor& input, std::initializer_list<const Optional*> parameters) {
  const at::ScalarType own = input.scalar_type();
  at::ScalarType result = at::ScalarType::Undefined;
  for (const Optional* parameter : parameters) {
    if (!given(*parameter)) {
      continue;
    }
    const at::ScalarType dtype = (*parameter)->scalar_type();
    const bool fits = dtype == own || (dtype == at::kFloat && contains(reduced_types, own));
    if (!fits || (result != at::ScalarType::Undefined && result != dtype)) {
      return at::ScalarType::Undefined;
    }
    result = dtype;
  }
  return result == at::ScalarType::Undefined ? own : result;
}

bool fits_parameters(const Tensor& input, std::initializer_list<const Optional*> parameters) {
  return parameter_dtype(input, parameters) != at::ScalarType::Undefined;
}

bool all_of_size(int64_t count, std::initializer_list<const Optional*> tensors) {
  for (const Optional* tensor : tensors) {
    if (given(*tensor) && ((*tensor)->dim() != 1 || (*tensor)->numel() != count)) {
      return false;
    }
  }
  return true;
}

// muDNN refuses NaN and infinity.
bool serves_epsilon(double eps) { return std::isfinite(eps); }

// A contiguous buffer of the dtype that muDNN writes; finish() copies it to the target if that has another dtype or
// strides. The target must outlive this object.
class Written {
 public:
  // If `read` is true, muDNN reads the initial values too.
  Written(const Tensor& target, at::ScalarType dtype, bool read = false)
      : target_(target),
        tensor_(
            !target.defined() || (target.scalar_type() == dtype && target.is_contiguous())
                ? Operand::borrowed(target)
                : Operand(new_empty(target, target.sizes(), dtype))) {
    if (read && !tensor_->is_same(target)) {
      convert(tensor_, target);
    }
  }
  dnn::Tensor described() const { return describe(tensor_); }
  void finish() const {
    if (!tensor_->is_same(target_)) {
      convert(target_, tensor_);
    }
  }

 private:
  const Tensor& target_;
  const Operand tensor_;
};

Tensor empty_in(const Tensor& like, IntArrayRef sizes, at::ScalarType dtype) { return new_empty(like, sizes, dtype); }

// Describes (N, C, space...) with the memory in the order of `format`. Other ranks are described as NCHW.
dnn::Tensor describe_batch(const Tensor& tensor, at::MemoryFormat format, Access access = Access::Write) {
  if (tensor.dim() >= 3 && tensor.dim() <= 5) {
    return describe_channels(tensor, format, access);
  }
  const int64_t channels = tensor.size(1);
  const int64_t space = tensor.numel() / (tensor.size(0) * channels);
  dnn::Tensor result = describe_as(tensor, {tensor.size(0), channels, space, 1}, {channels * space, space, 1, 1});
  check(result.SetFormat(dnn::Tensor::Format::NCHW), "Tensor::SetFormat");
  return result;
}

// ---- Batch norm ----------------------------------------------------------------------------------------------------

dnn::BatchNorm batch_norm_of(double eps, bool training) {
  dnn::BatchNorm op;
  check(op.SetMode(dnn::BatchNorm::Mode::PER_CHANNEL), "BatchNorm::SetMode");
  check(op.SetEpsilon(eps), "BatchNorm::SetEpsilon");
  check(op.SetTraining(training), "BatchNorm::SetTraining");
  return op;
}

// Fills out, which is dense in `format`, and in training the saved statistics.
void run_batch_norm(
    const Tensor& out, const Tensor& save_mean, const Tensor& save_invstd, const Tensor& input, const Optional& weight,
    const Optional& bias, const Optional& running_mean, const Optional& running_var, bool training, double momentum,
    double eps, at::MemoryFormat format) {
  const at::ScalarType dtype = statistics_dtype(input);
  const Operand in = contiguous(input, format);
  const Operand scale = dense_in(weight, dtype);
  const Operand shift = dense_in(bias, dtype);
  const dnn::BatchNorm op = batch_norm_of(eps, training);
  const OnDevice on(out);
  dnn::Tensor result = describe_batch(out, format);
  if (!training) {
    const Operand mean = dense_in(running_mean, dtype);
    const Operand variance = dense_in(running_var, dtype);
    check(
        op.RunPure(
            on.handle(), result, describe_batch(in, format, kRead), operand(mean), operand(variance), operand(scale),
            operand(shift)),
        "BatchNorm::RunPure", {&out, &input});
    return;
  }
  const Written mean(save_mean, dtype);
  const Written invstd(save_invstd, dtype);
  const Tensor none;
  const Written averaged_mean(given(running_mean) ? *running_mean : none, dtype, /*read=*/true);
  const Written averaged_variance(given(running_var) ? *running_var : none, dtype, /*read=*/true);
  dnn::Tensor means = mean.described();
  dnn::Tensor invstds = invstd.described();
  dnn::Tensor averaged_means = averaged_mean.described();
  dnn::Tensor averaged_variances = averaged_variance.described();
  check(
      op.RunComposite(
          on.handle(), result, describe_batch(in, format, kRead), averaged_means, averaged_variances, means, invstds,
          operand(scale), operand(shift), momentum, on.workspace()),
      "BatchNorm::RunComposite", {&out, &input});
  for (const Written* written : {&mean, &invstd, &averaged_mean, &averaged_variance}) {
    written->finish();
  }
}

Three batch_norm(
    const Tensor& input, const Optional& weight, const Optional& bias, const Optional& running_mean,
    const Optional& running_var, bool training, double momentum, double eps) {
  const at::MemoryFormat format = channels_format(input);
  const at::ScalarType dtype = statistics_dtype(input);
  const int64_t saved = training ? input.size(1) : 0;
  Three results{at::empty_like(input, format), empty_in(input, {saved}, dtype), empty_in(input, {saved}, dtype)};
  const auto& [out, save_mean, save_invstd] = results;
  run_batch_norm(
      out, save_mean, save_invstd, input, weight, bias, running_mean, running_var, training, momentum, eps, format);
  return results;
}

bool batch_norm_served(
    const Tensor& input, const Optional& weight, const Optional& bias, const Optional& running_mean,
    const Optional& running_var, bool training, double /*momentum*/, double eps) {
  return serves_epsilon(eps) && serves<float_types>(input, weight, bias, running_mean, running_var) &&
      input.dim() >= 2 && given(running_mean) == given(running_var) && (training || given(running_mean)) &&
      all_of_size(input.size(1), {&weight, &bias, &running_mean, &running_var}) &&
      fits_parameters(input, {&weight, &bias, &running_mean, &running_var});
}

ThreeGiven batch_norm_out(
    const Tensor& input, const Optional& weight, const Optional& bias, const Optional& running_mean,
    const Optional& running_var, bool training, double momentum, double eps, Tensor& out, Tensor& save_mean,
    Tensor& save_invstd) {
  const at::MemoryFormat format = channels_format(input);
  if (at::native::resize_output(out, input.sizes()) && format != at::MemoryFormat::Contiguous) {
    out.unsafeGetTensorImpl()->empty_tensor_restride(format);
  }
  if (training) {
    at::native::resize_output(save_mean, {input.size(1)});
    at::native::resize_output(save_invstd, {input.size(1)});
  }
  const Tensor result = out.is_contiguous(format) ? out : at::empty_like(input, format);
  run_batch_norm(
      result, save_mean, save_invstd, input, weight, bias, running_mean, running_var, training, momentum, eps, format);
  if (!result.is_same(out)) {
    convert(out, result);
  }
  return {out, save_mean, save_invstd};
}

bool batch_norm_out_served(
    const Tensor& input, const Optional& weight, const Optional& bias, const Optional& running_mean,
    const Optional& running_var, bool training, double momentum, double eps, Tensor& out, Tensor& save_mean,
    Tensor& save_invstd) {
  if (!batch_norm_served(input, weight, bias, running_mean, running_var, training, momentum, eps)) {
    return false;
  }
  const at::ScalarType dtype = statistics_dtype(input);
  return writable(out) && out.scalar_type() == input.scalar_type() && out.device() == input.device() &&
      writable(save_mean) && save_mean.scalar_type() == dtype && save_mean.device() == input.device() &&
      writable(save_invstd) && save_invstd.scalar_type() == dtype && save_invstd.device() == input.device();
}

Three batch_norm_legit(
    const Tensor& input, const Optional& weight, const Optional& bias, Tensor& running_mean, Tensor& running_var,
    bool training, double momentum, double eps) {
  return batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
}

bool batch_norm_legit_served(
    const Tensor& input, const Optional& weight, const Optional& bias, Tensor& running_mean, Tensor& running_var,
    bool training, double momentum, double eps) {
  return batch_norm_served(input, weight, bias, running_mean, running_var, training, momentum, eps);
}

ThreeGiven batch_norm_legit_out(
    const Tensor& input, const Optional& weight, const Optional& bias, Tensor& running_mean, Tensor& running_var,
    bool training, double momentum, double eps, Tensor& out, Tensor& save_mean, Tensor& save_invstd) {
  return batch_norm_out(
      input, weight, bias, running_mean, running_var, training, momentum, eps, out, save_mean, save_invstd);
}

bool batch_norm_legit_out_served(
    const Tensor& input, const Optional& weight, const Optional& bias, Tensor& running_mean, Tensor& running_var,
    bool training, double momentum, double eps, Tensor& out, Tensor& save_mean, Tensor& save_invstd) {
  return batch_norm_out_served(
      input, weight, bias, running_mean, running_var, training, momentum, eps, out, save_mean, save_invstd);
}

Three batch_norm_no_stats(
    const Tensor& input, const Optional& weight, const Optional& bias, bool training, double momentum, double eps) {
  return batch_norm(input, weight, bias, Tensor(), Tensor(), training, momentum, eps);
}

bool batch_norm_no_stats_served(
    const Tensor& input, const Optional& weight, const Optional& bias, bool training, double momentum, double eps) {
  return batch_norm_served(input, weight, bias, std::nullopt, std::nullopt, training, momentum, eps);
}

ThreeGiven batch_norm_no_stats_out(
    const Tensor& input, const Optional& weight, const Optional& bias, bool training, double momentum, double eps,
    Tensor& out, Tensor& save_mean, Tensor& save_invstd) {
  return batch_norm_out(
      input, weight, bias, std::nullopt, std::nullopt, training, momentum, eps, out, save_mean, save_invstd);
}

bool batch_norm_no_stats_out_served(
    const Tensor& input, const Optional& weight, const Optional& bias, bool training, double momentum, double eps,
    Tensor& out, Tensor& save_mean, Tensor& save_invstd) {
  return batch_norm_out_served(
      input, weight, bias, std::nullopt, std::nullopt, training, momentum, eps, out, save_mean, save_invstd);
}

Three batch_norm_no_training(
    const Tensor& input, const Optional& weight, const Optional& bias, const Tensor& running_mean,
    const Tensor& running_var, double momentum, double eps) {
  return batch_norm(input, weight, bias, running_mean, running_var, /*training=*/false, momentum, eps);
}

bool batch_norm_no_training_served(
    const Tensor& input, const Optional& weight, const Optional& bias, const Tensor& running_mean,
    const Tensor& running_var, double momentum, double eps) {
  return batch_norm_served(input, weight, bias, running_mean, running_var, /*training=*/false, momentum, eps);
}

// The fourth result is the reserve space that cuDNN saves for the backward pass; it is empty here.
Four batch_norm_with_update(
    const Tensor& input, const Optional& weight, const Optional& bias, Tensor& running_mean, Tensor& running_var,
    double momentum, double eps) {
  auto [out, save_mean, save_invstd] =
      batch_norm(input, weight, bias, running_mean, running_var, /*training=*/true, momentum, eps);
  return {std::move(out), std::move(save_mean), std::move(save_invstd), empty_in(input, {0}, at::kByte)};
}

bool batch_norm_with_update_served(
    const Tensor& input, const Optional& weight, const Optional& bias, Tensor& running_mean, Tensor& running_var,
    double momentum, double eps) {
  return batch_norm_served(input, weight, bias, running_mean, running_var, /*training=*/true, momentum, eps);
}

FourGiven batch_norm_with_update_out(
    const Tensor& input, const Optional& weight, const Optional& bias, Tensor& running_mean, Tensor& running_var,
    double momentum, double eps, Tensor& out, Tensor& save_mean, Tensor& save_invstd, Tensor& reserve) {
  batch_norm_out(
      input, weight, bias, running_mean, running_var, /*training=*/true, momentum, eps, out, save_mean, save_invstd);
  return {out, save_mean, save_invstd, reserve};
}

bool batch_norm_with_update_out_served(
    const Tensor& input, const Optional& weight, const Optional& bias, Tensor& running_mean, Tensor& running_var,
    double momentum, double eps, Tensor& out, Tensor& save_mean, Tensor& save_invstd, Tensor& /*reserve*/) {
  return batch_norm_out_served(
      input, weight, bias, running_mean, running_var, /*training=*/true, momentum, eps, out, save_mean, save_invstd);
}

Three batch_norm_backward(
    const Tensor& grad_out, const Tensor& input, const Optional& weight, const Optional& running_mean,
    const Optional& running_var, const Optional& save_mean, const Optional& save_invstd, bool train, double eps,
    std::array<bool, 3> output_mask) {
  Three results;
  auto& [grad_input, grad_weight, grad_bias] = results;
  if (!output_mask[0] && !output_mask[1] && !output_mask[2]) {
    return results;
  }
  const Optional& center = train ? save_mean : running_mean;
  const Optional& spread = train ? save_invstd : running_var;
  const at::MemoryFormat format = channels_format(input);
  const at::ScalarType outer = parameter_dtype(input, {&weight});
  const at::ScalarType dtype = statistics_dtype(input);
  const Operand in = contiguous(input, format);
  const Operand gradient = contiguous(grad_out, format);
  const Operand mean = dense_in(center, dtype);
  const Operand deviation = dense_in(spread, dtype);
  const Operand scale = dense_in(weight, dtype);
  if (output_mask[0]) {
    grad_input = at::empty_like(input, format);
  }
  if (output_mask[1]) {
    grad_weight = empty_in(input, {input.size(1)}, outer);
  }
  if (output_mask[2]) {
    grad_bias = empty_in(input, {input.size(1)}, outer);
  }
  const Written scales(grad_weight, dtype);
  const Written shifts(grad_bias, dtype);
  dnn::Tensor result = output_mask[0] ? describe_batch(grad_input, format) : dnn::Tensor();
  dnn::Tensor of_mean; // gradients that are not needed
  dnn::Tensor of_variance;
  dnn::Tensor of_weight = scales.described();
  dnn::Tensor of_bias = shifts.described();
  const dnn::BatchNorm op = batch_norm_of(eps, train);
  const OnDevice on(input);
  check(
      op.RunBwd(
          on.handle(), result, of_mean, of_variance, of_weight, of_bias, describe_batch(in, format, kRead),
          describe_batch(gradient, format, kRead), operand(mean), operand(deviation), operand(scale), on.workspace()),
      "BatchNorm::RunBwd", {&input, &grad_out});
  scales.finish();
  shifts.finish();
  return results;
}

bool batch_norm_backward_served(
    const Tensor& grad_out, const Tensor& input, const Optional& weight, const Optional& running_mean,
    const Optional& running_var, const Optional& save_mean, const Optional& save_invstd, bool train, double eps,
    std::array<bool, 3> /*output_mask*/) {
  const Optional& center = train ? save_mean : running_mean;
  const Optional& spread = train ? save_invstd : running_var;
  return serves_epsilon(eps) && given(center) && given(spread) &&
      serves<float_types>(grad_out, input, weight, center, spread) && input.dim() >= 2 &&
      grad_out.sizes() == input.sizes() && grad_out.scalar_type() == input.scalar_type() &&
      all_of_size(input.size(1), {&weight, &center, &spread}) && fits_parameters(input, {&weight}) &&
      fits_parameters(input, {&center, &spread});
}

Three batch_norm_backward_with_reserve(
    const Tensor& grad_out, const Tensor& input, const Tensor& weight, const Optional& running_mean,
    const Optional& running_var, const Optional& save_mean, const Optional& save_var, bool update, double eps,
    std::array<bool, 3> output_mask, const Tensor& /*reserve*/) {
  return batch_norm_backward(
      grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps, output_mask);
}

bool batch_norm_backward_with_reserve_served(
    const Tensor& grad_out, const Tensor& input, const Tensor& weight, const Optional& running_mean,
    const Optional& running_var, const Optional& save_mean, const Optional& save_var, bool update, double eps,
    std::array<bool, 3> output_mask, const Tensor& /*reserve*/) {
  return batch_norm_backward_served(
      grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps, output_mask);
}

// ---- Layer and RMS norm --------------------------------------------------------------------------------------------

// Whether the trailing dimensions of the input, and the weight and bias, have the given sizes.
bool normalizes(const Tensor& input, IntArrayRef shape, std::initializer_list<const Optional*> parameters) {
  const auto own = input.sizes();
  if (shape.empty() || shape.size() > own.size() || own.slice(own.size() - shape.size()) != shape) {
    return false;
  }
  for (const Optional* parameter : parameters) {
    if (given(*parameter) && (*parameter)->sizes() != shape) {
      return false;
    }
  }
  return true;
}

int64_t row_count(const Tensor& input, IntArrayRef shape) { return input.numel() / c10::multiply_integers(shape); }

// Shape with one number per row: the input's shape, with 1 for the normalized dimensions.
at::DimVector shape_of_rows(const Tensor& input, IntArrayRef shape) {
  at::DimVector sizes(input.sizes());
  std::fill(sizes.end() - static_cast<int64_t>(shape.size()), sizes.end(), 1);
  return sizes;
}

template <class Operation>
void set_axes(Operation& op, const Tensor& input, IntArrayRef shape) {
  std::array<int, max_dims> axes{}; // served tensors have at most max_dims dimensions
  std::iota(axes.begin(), axes.end(), static_cast<int>(input.dim() - static_cast<int64_t>(shape.size())));
  check(op.SetAxis(static_cast<int>(shape.size()), axes.data()), "SetAxis", {&input});
}

Three layer_norm(
    const Tensor& input, IntArrayRef normalized_shape, const Optional& weight, const Optional& bias, double eps) {
  const Operand in = contiguous(input);
  const Operand scale = contiguous_or_none(weight);
  const Operand shift = contiguous_or_none(bias);
  const at::ScalarType saved = statistics_dtype(input);
  const at::DimVector rows = shape_of_rows(input, normalized_shape);
  Three results{new_empty(in, in->sizes()), empty_in(input, rows, saved), empty_in(input, rows, saved)};
  const auto& [out, mean, rstd] = results;
  dnn::LayerNorm op;
  set_axes(op, in, normalized_shape);
  check(op.SetEpsilon(eps), "LayerNorm::SetEpsilon");
  const OnDevice on(out);
  dnn::Tensor result = describe(out);
  dnn::Tensor described_mean = describe(mean);
  dnn::Tensor described_rstd = describe(rstd);
  check(
      op.Run(
          on.handle(), result, described_mean, described_rstd, operand(in), operand(scale), operand(shift),
          on.workspace()),
      "LayerNorm::Run", {&out, &input});
  return results;
}

bool layer_norm_served(
    const Tensor& input, IntArrayRef normalized_shape, const Optional& weight, const Optional& bias, double eps) {
  return serves_epsilon(eps) && serves<float_types>(input, weight, bias) &&
      normalizes(input, normalized_shape, {&weight, &bias}) && fits_parameters(input, {&weight, &bias});
}

Three layer_norm_backward(
    const Tensor& grad_out, const Tensor& input, IntArrayRef normalized_shape, const Tensor& mean, const Tensor& rstd,
    const Optional& weight, const Optional& bias, std::array<bool, 3> output_mask) {
  Three results;
  auto& [grad_input, grad_weight, grad_bias] = results;
  if (!output_mask[0] && !output_mask[1] && !output_mask[2]) {
    return results;
  }
  const Operand gradient = contiguous(grad_out);
  const Operand in = contiguous(input);
  const Operand center = dense_in(mean, statistics_dtype(input));
  const Operand deviation = dense_in(rstd, statistics_dtype(input));
  const Operand scale = contiguous_or_none(weight);
  if (output_mask[0]) {
    grad_input = new_empty(in, in->sizes());
  }
  if (output_mask[1]) {
    grad_weight = empty_in(input, normalized_shape, weight->scalar_type());
  }
  if (output_mask[2]) {
    grad_bias = empty_in(input, normalized_shape, bias->scalar_type());
  }
  dnn::LayerNorm op;
  set_axes(op, in, normalized_shape);
  const OnDevice on(input);
  dnn::Tensor of_input = describe(grad_input);
  dnn::Tensor of_weight = describe(grad_weight);
  dnn::Tensor of_bias = describe(grad_bias);
  check(
      op.RunBwd(
          on.handle(), of_input, of_weight, of_bias, operand(gradient), operand(in), operand(center),
          operand(deviation), operand(scale), on.workspace()),
      "LayerNorm::RunBwd", {&grad_out, &input});
  return results;
}

bool layer_norm_backward_served(
    const Tensor& grad_out, const Tensor& input, IntArrayRef normalized_shape, const Tensor& mean, const Tensor& rstd,
    const Optional& weight, const Optional& bias, std::array<bool, 3> output_mask) {
  return serves<float_types>(grad_out, input, mean, rstd, weight, bias) && grad_out.sizes() == input.sizes() &&
      grad_out.scalar_type() == input.scalar_type() && normalizes(input, normalized_shape, {&weight, &bias}) &&
      mean.numel() == row_count(input, normalized_shape) && rstd.numel() == mean.numel() &&
      (given(weight) || !output_mask[1]) && (given(bias) || !output_mask[2]) &&
      fits_parameters(input, {&weight, &bias});
}

// torch's default is the machine epsilon of the dtype of the statistics.
double rms_epsilon(const Tensor& input, std::optional<double> eps) {
  return eps.has_value()                   ? *eps
      : input.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                           : std::numeric_limits<float>::epsilon();
}

Two rms_norm(const Tensor& input, IntArrayRef normalized_shape, const Optional& weight, std::optional<double> eps) {
  const Operand in = contiguous(input);
  const Operand scale = contiguous_or_none(weight);
  Two results{
      new_empty(in, in->sizes()), empty_in(input, shape_of_rows(input, normalized_shape), statistics_dtype(input))};
  const auto& [out, rstd] = results;
  dnn::RMSNorm op;
  set_axes(op, in, normalized_shape);
  check(op.SetEpsilon(rms_epsilon(input, eps)), "RMSNorm::SetEpsilon");
  const OnDevice on(out);
  dnn::Tensor result = describe(out);
  dnn::Tensor deviation = describe(rstd);
  check(op.Run(on.handle(), result, deviation, operand(in), operand(scale)), "RMSNorm::Run", {&out, &input});
  return results;
}

bool rms_norm_served(
    const Tensor& input, IntArrayRef normalized_shape, const Optional& weight, std::optional<double> eps) {
  return serves_epsilon(eps.value_or(0)) && serves<float_types>(input, weight) &&
      normalizes(input, normalized_shape, {&weight}) && fits_parameters(input, {&weight});
}

Two rms_norm_backward(
    const Tensor& grad_out, const Tensor& input, IntArrayRef normalized_shape, const Tensor& rstd,
    const Optional& weight, std::array<bool, 2> output_mask) {
  Two results;
  auto& [grad_input, grad_weight] = results;
  const bool of_weight_too = output_mask[1] && given(weight);
  if (!output_mask[0] && !of_weight_too) {
    return results;
  }
  const Operand gradient = contiguous(grad_out);
  const Operand in = contiguous(input);
  const Operand deviation = dense_in(rstd, statistics_dtype(input));
  const Operand scale = contiguous_or_none(weight);
  if (output_mask[0]) {
    grad_input = new_empty(in, in->sizes());
  }
  if (of_weight_too) {
    grad_weight = empty_in(input, normalized_shape, weight->scalar_type());
  }
  dnn::RMSNorm op;
  set_axes(op, in, normalized_shape);
  const OnDevice on(input);
  dnn::Tensor of_input = describe(grad_input);
  dnn::Tensor of_weight = describe(grad_weight);
  check(
      op.RunBwd(
          on.handle(), of_input, of_weight, operand(gradient), operand(in), operand(deviation), operand(scale),
          on.workspace()),
      "RMSNorm::RunBwd", {&grad_out, &input});
  return results;
}

bool rms_norm_backward_served(
    const Tensor& grad_out, const Tensor& input, IntArrayRef normalized_shape, const Tensor& rstd,
    const Optional& weight, std::array<bool, 2> /*output_mask*/) {
  return serves<float_types>(grad_out, input, rstd, weight) && grad_out.sizes() == input.sizes() &&
      grad_out.scalar_type() == input.scalar_type() && normalizes(input, normalized_shape, {&weight}) &&
      rstd.numel() == row_count(input, normalized_shape) && fits_parameters(input, {&weight});
}

// torch composes the forward pass on other devices. This operator has a kernel for musa, so calls that muDNN does not
// support are composed here.
Two rms_norm_composed(
    const Tensor& input, IntArrayRef normalized_shape, const Optional& weight, std::optional<double> eps) {
  const auto rows = static_cast<int64_t>(input.dim()) - static_cast<int64_t>(normalized_shape.size());
  TORCH_CHECK(
      rows >= 0 && input.sizes().slice(static_cast<size_t>(std::max<int64_t>(rows, 0))) == normalized_shape,
      "Given normalized_shape=", normalized_shape, ", expected input with shape [*", normalized_shape,
      "], but got input of size ", input.sizes());
  const at::ScalarType dtype = input.scalar_type();
  const at::ScalarType computed = contains(reduced_types, dtype) ? at::kFloat : dtype;
  std::vector<int64_t> inner(normalized_shape.size());
  std::iota(inner.begin(), inner.end(), rows);
  const Tensor in = input.to(computed);
  // torch's default is the epsilon of the dtype of the computation.
  const double epsilon = eps.has_value() ? *eps
      : computed == at::kDouble          ? std::numeric_limits<double>::epsilon()
                                         : std::numeric_limits<float>::epsilon();
  const Tensor rstd = in.mul(in).mean(inner, /*keepdim=*/true).add(epsilon).rsqrt();
  const Tensor normalized = in.mul(rstd);
  return {(given(weight) ? normalized.mul(weight->to(computed)) : normalized).to(dtype), rstd};
}

// The CPU has no kernel for this gradient, so this one is used if muDNN does not support the operands or is disabled.
Two rms_norm_backward_composed(
    const Tensor& grad_out, const Tensor& input, IntArrayRef normalized_shape, const Tensor& rstd,
    const Optional& weight, std::array<bool, 2> output_mask) {
  const auto rows = static_cast<int64_t>(input.dim()) - static_cast<int64_t>(normalized_shape.size());
  std::vector<int64_t> outer(static_cast<size_t>(rows));
  std::vector<int64_t> inner(normalized_shape.size());
  std::iota(outer.begin(), outer.end(), 0);
  std::iota(inner.begin(), inner.end(), rows);
  const at::ScalarType dtype = rstd.scalar_type();
  const Tensor gradient = grad_out.to(dtype);
  const Tensor normalized = input.to(dtype).mul(rstd);
  Two results;
  auto& [grad_input, grad_weight] = results;
  if (output_mask[0]) {
    // With the normalized input x and its gradient g: rstd * (g - x * mean(g * x)).
    const Tensor by_normalized = given(weight) ? gradient.mul(weight->to(dtype)) : gradient;
    const auto length = static_cast<double>(std::max<int64_t>(c10::multiply_integers(normalized_shape), 1));
    const Tensor mean = by_normalized.mul(normalized).sum(inner, /*keepdim=*/true).div_(length);
    grad_input = by_normalized.sub(normalized.mul(mean)).mul_(rstd).to(input.scalar_type());
  }
  if (output_mask[1] && given(weight)) {
    const Tensor product = gradient.mul(normalized);
    grad_weight = (outer.empty() ? product : product.sum(outer)).to(weight->scalar_type());
  }
  return results;
}

// ---- Group norm ----------------------------------------------------------------------------------------------------

Three group_norm(
    const Tensor& input, const Optional& weight, const Optional& bias, int64_t n, int64_t /*c*/, int64_t /*hxw*/,
    int64_t group, double eps) {
  const at::MemoryFormat format = channels_format(input);
  const Operand in = contiguous(input, format);
  const Operand scale = contiguous_or_none(weight);
  const Operand shift = contiguous_or_none(bias);
  const at::ScalarType saved = parameter_dtype(input, {&weight, &bias});
  Three results{at::empty_like(input, format), empty_in(input, {n, group}, saved), empty_in(input, {n, group}, saved)};
  const auto& [out, mean, rstd] = results;
  const Written means(mean, statistics_dtype(input));
  const Written deviations(rstd, statistics_dtype(input));
  dnn::GroupNorm op;
  check(op.SetEpsilon(eps), "GroupNorm::SetEpsilon");
  const bool channels_last = format != at::MemoryFormat::Contiguous;
  check(op.SetAxis(channels_last ? static_cast<int>(input.dim()) - 1 : 1), "GroupNorm::SetAxis");
  check(op.SetGroup(static_cast<int>(group)), "GroupNorm::SetGroup");
  const OnDevice on(out);
  dnn::Tensor result = describe_batch(out, format);
  dnn::Tensor described_mean = means.described();
  dnn::Tensor described_rstd = deviations.described();
  check(
      op.Run(
          on.handle(), result, described_mean, described_rstd, describe_batch(in, format, kRead), operand(scale),
          operand(shift)),
      "GroupNorm::Run", {&out, &input});
  means.finish();
  deviations.finish();
  return results;
}

bool group_norm_served(
    const Tensor& input, const Optional& weight, const Optional& bias, int64_t n, int64_t c, int64_t hxw, int64_t group,
    double eps) {
  return serves_epsilon(eps) && serves<float_types>(input, weight, bias) && input.dim() >= 2 && input.size(0) == n &&
      input.size(1) == c && input.numel() == n * c * hxw && group > 0 && c % group == 0 &&
      all_of_size(c, {&weight, &bias}) && fits_parameters(input, {&weight, &bias}) &&
      // group_norm makes the input contiguous; torch's own kernel raises an error for others.
      input.is_contiguous(input.suggest_memory_format());
}

} // namespace

void declare_norm(OpPack& pack) {
  pack.impl("aten::native_batch_norm", TORCH_FN(batch_norm), TORCH_FN(batch_norm_served));
  pack.impl("aten::native_batch_norm.out", TORCH_FN(batch_norm_out), TORCH_FN(batch_norm_out_served));
  pack.impl("aten::native_batch_norm_backward", TORCH_FN(batch_norm_backward), TORCH_FN(batch_norm_backward_served));
  pack.impl("aten::_native_batch_norm_legit", TORCH_FN(batch_norm_legit), TORCH_FN(batch_norm_legit_served));
  pack.impl(
      "aten::_native_batch_norm_legit.out", TORCH_FN(batch_norm_legit_out), TORCH_FN(batch_norm_legit_out_served));
  pack.impl(
      "aten::_native_batch_norm_legit.no_stats", TORCH_FN(batch_norm_no_stats), TORCH_FN(batch_norm_no_stats_served));
  pack.impl(
      "aten::_native_batch_norm_legit.no_stats_out", TORCH_FN(batch_norm_no_stats_out),
      TORCH_FN(batch_norm_no_stats_out_served));
  pack.impl(
      "aten::_native_batch_norm_legit_no_training", TORCH_FN(batch_norm_no_training),
      TORCH_FN(batch_norm_no_training_served));
  pack.impl("aten::_batch_norm_with_update", TORCH_FN(batch_norm_with_update), TORCH_FN(batch_norm_with_update_served));
  pack.impl(
      "aten::_batch_norm_with_update.out", TORCH_FN(batch_norm_with_update_out),
      TORCH_FN(batch_norm_with_update_out_served));
  pack.impl(
      "aten::batch_norm_backward", TORCH_FN(batch_norm_backward_with_reserve),
      TORCH_FN(batch_norm_backward_with_reserve_served));

  pack.impl("aten::native_layer_norm", TORCH_FN(layer_norm), TORCH_FN(layer_norm_served));
  pack.impl("aten::native_layer_norm_backward", TORCH_FN(layer_norm_backward), TORCH_FN(layer_norm_backward_served));
  pack.impl("aten::native_group_norm", TORCH_FN(group_norm), TORCH_FN(group_norm_served));

  pack.impl("aten::_fused_rms_norm", TORCH_FN(rms_norm), TORCH_FN(rms_norm_served));
  pack.impl("aten::_fused_rms_norm_backward", TORCH_FN(rms_norm_backward), TORCH_FN(rms_norm_backward_served));
  OpPack& composed = pack.of_provider("runtime");
  composed.impl("aten::_fused_rms_norm", TORCH_FN(rms_norm_composed));
  composed.impl("aten::_fused_rms_norm_backward", TORCH_FN(rms_norm_backward_composed));
}

} // namespace musa_ops_mudnn
