// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// BatchNorm, LayerNorm, GroupNorm, RMSNorm.
#include "cpu_stubs.h"

#include <ATen/ScalarOps.h>
#include <ATen/native/batch_norm.h>
#include <ATen/native/layer_norm.h>
#include <ATen/ops/add_cpu_dispatch.h>
#include <ATen/ops/addcmul_cpu_dispatch.h>
#include <ATen/ops/addmv_cpu_dispatch.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_vector_norm_cpu_dispatch.h>
#include <ATen/ops/mul_cpu_dispatch.h>
#include <ATen/ops/native_batch_norm_backward_cpu_dispatch.h>
#include <ATen/ops/native_batch_norm_cpu_dispatch.h>
#include <ATen/ops/native_group_norm_cpu_dispatch.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rsqrt_cpu_dispatch.h>
#include <ATen/ops/sum_cpu_dispatch.h>

#include <cmath>
#include <vector>

#include <mudnn_backend/lending.h>
#include "support/alias.h"
#include "support/call.h"
#include "support/outputs.h"
#include "support/results.h"
#include "support/shapes.h"

namespace musa::dnn {
namespace {

using namespace musa_emulator::dnn;

using at::IntArrayRef;
using at::Scalar;
using c10::ScalarType;

bool narrow(const Tensor& tensor) { return has_type(tensor, {Tensor::Type::HALF, Tensor::Type::BFLOAT16}); }

Tensor::Type statistics_type(const Tensor& in) {
  return has_type(in, {Tensor::Type::DOUBLE}) ? Tensor::Type::DOUBLE : Tensor::Type::FLOAT;
}

at::Tensor in_type(const at::Tensor& tensor, ScalarType type) {
  return tensor.scalar_type() == type ? tensor : tensor.to(type);
}

// Returns a tensor of this shape: an alias of a contiguous operand, or a copy of another one.
at::Tensor shaped(Tensor tensor, IntArrayRef shape) {
  if (!present(tensor)) {
    return {};
  }
  if (!TensorAccess::contiguous(tensor)) {
    return alias(tensor).reshape(shape);
  }
  tensor.SetNdInfo(static_cast<int64_t>(shape.size()), shape.data());
  return alias(tensor);
}

// Returns the weight or bias in the type of the statistics. In torch, FLOAT parameters are required for FLOAT
// statistics of a 16-bit input, so if the weight is absent and `needed`, it is replaced by ones.
at::Tensor parameter(const Tensor& tensor, IntArrayRef shape, const Tensor& in, bool needed = false) {
  const ScalarType type = scalar_type(statistics_type(in));
  if (present(tensor)) {
    return in_type(shaped(tensor, shape), type);
  }
  return needed ? at::ones(shape, options_of(type)) : at::Tensor();
}

// Returns the type of the computation for a norm over rows or groups. Device kernels require parameters of the input's
// type; host kernels support a 16-bit input with FLOAT parameters.
ScalarType input_type(const Tensor& in, std::initializer_list<const Tensor*> parameters) {
  const ScalarType type = scalar_type(TensorAccess::type(in));
  const bool others = std::any_of(parameters.begin(), parameters.end(), [&in](const Tensor* tensor) {
    return present(*tensor) && TensorAccess::type(*tensor) != TensorAccess::type(in);
  });
  return !kOnHost && others ? c10::promoteTypes(type, at::kFloat) : type;
}

// Returns a parameter for such a norm.
at::Tensor parameter_of_rows(const Tensor& tensor, IntArrayRef shape, const Tensor& in, ScalarType type) {
  if (kOnHost) {
    return parameter(tensor, shape, in, narrow(in));
  }
  return present(tensor) ? in_type(shaped(tensor, shape), type) : at::Tensor();
}

void store_given(const Tensor& target, const at::Tensor& value) {
  if (present(target) && value.defined()) {
    at::Tensor result = alias(target);
    at::native::copy_(result, value.reshape(result.sizes()));
  }
}

// The tensor in which a result is computed: the caller's memory if that is contiguous and has the type, otherwise a
// temporary; undefined if the caller does not need the result.
struct Result {
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;
  Result(const Tensor& target, IntArrayRef shape, ScalarType type)
      : target(target),
        direct(
            !present(target) || (TensorAccess::contiguous(target) && scalar_type(TensorAccess::type(target)) == type)),
        tensor(direct ? shaped(target, shape) : new_tensor(shape, type)) {}
  void finish() const { direct ? given.keep() : store_given(target, tensor); }

  const Tensor& target;
  bool direct;
  at::Tensor tensor;
  Outputs<1> given{tensor};
};

// Checks the operands that have the shape of the input. The first one is the input.
bool check_inputs(Call& call, std::initializer_list<const Tensor*> tensors) {
  const Tensor& in = **tensors.begin();
  for (const Tensor* tensor : tensors) {
    if (!call.require(present(*tensor), Status::INVALID_PARAMETER, "an operand is absent") ||
        !call.require(same_shape(*tensor, in), Status::INVALID_PARAMETER, "the operands differ in shape") ||
        !call.require(floating(in), Status::NOT_SUPPORTED, "the input does not have a floating type") ||
        !call.require(
            TensorAccess::type(*tensor) == TensorAccess::type(in), Status::NOT_SUPPORTED,
            "the operands differ in type")) {
      return false;
    }
  }
  return true;
}

// Checks operands with one number per row or channel. They may be absent.
bool check_parameters(Call& call, int64_t count, std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* tensor : tensors) {
    if (!present(*tensor)) {
      continue;
    }
    if (!call.require(
            TensorAccess::elements(*tensor) == count, Status::INVALID_PARAMETER,
            "a parameter or statistic has the wrong number of elements") ||
        !call.require(floating(*tensor), Status::NOT_SUPPORTED, "a parameter does not have a floating type") ||
        !call.require(
            TensorAccess::contiguous(*tensor), Status::NOT_SUPPORTED, "a parameter or statistic is not contiguous")) {
      return false;
    }
  }
  return true;
}

bool check_statistics(Call& call, const Tensor& in, int64_t count, std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* tensor : tensors) {
    if (!call.require(present(*tensor), Status::INVALID_PARAMETER, "a statistic is absent") ||
        !check_parameters(call, count, {tensor}) ||
        !call.require(
            has_type(*tensor, {statistics_type(in)}), Status::NOT_SUPPORTED,
            "the type of a statistic is not FLOAT, or DOUBLE for a DOUBLE input")) {
      return false;
    }
  }
  return true;
}

// The input as rows over the normalized dimensions, which are the trailing ones.
struct Rows {
  int64_t count = 0;
  int64_t length = 0;
};

bool make_rows(Call& call, const Tensor& in, const std::vector<int>& axes, Rows& rows) {
  const int ndim = TensorAccess::ndim(in);
  if (!call.require(!axes.empty(), Status::INVALID_PARAMETER, "no axis was set")) {
    return false;
  }
  unsigned named = 0;
  for (const int axis : axes) {
    if (!call.require(axis >= -ndim && axis < ndim, Status::INVALID_PARAMETER, "an axis is out of range")) {
      return false;
    }
    const unsigned bit = 1U << (axis < 0 ? axis + ndim : axis);
    if (!call.require((named & bit) == 0, Status::INVALID_PARAMETER, "an axis was set twice")) {
      return false;
    }
    named |= bit;
  }
  const int first = ndim - static_cast<int>(axes.size());
  const unsigned trailing = ((1U << ndim) - 1) & ~((1U << first) - 1);
  if (!call.require(named == trailing, Status::NOT_SUPPORTED, "the axes are not the last dimensions")) {
    return false;
  }
  rows.length = 1;
  for (int i = first; i < ndim; ++i) {
    rows.length *= TensorAccess::dims(in)[i];
  }
  rows.count = TensorAccess::elements(in) / rows.length;
  return true;
}

Status set_axes(std::vector<int>& own, int count, const int* axes) {
  if (count <= 0 || count > Tensor::kMaxDims || axes == nullptr) {
    return Status::INVALID_PARAMETER;
  }
  own.assign(axes, axes + count);
  return Status::SUCCESS;
}

// Accepts negative values, which some callers use; rejects NaN and infinity.
Status set_epsilon(double& own, double epsilon) {
  if (!std::isfinite(epsilon)) {
    return Status::INVALID_PARAMETER;
  }
  own = epsilon;
  return Status::SUCCESS;
}

// Workspace for sums over rows, which are split among up to 32 multiprocessors.
size_t partial_sums(const Rows& rows, size_t sums) {
  return static_cast<size_t>(std::min<int64_t>(rows.count, 32) * rows.length) * sums * sizeof(float);
}

int channel_axis(const Tensor& tensor) {
  const int ndim = TensorAccess::ndim(tensor);
  switch (TensorAccess::format(tensor)) {
    case Tensor::Format::NWC: return ndim == 3 ? 2 : 1;
    case Tensor::Format::NHWC: return ndim == 4 ? 3 : 1;
    case Tensor::Format::NDHWC: return ndim == 5 ? 4 : 1;
    default: return 1;
  }
}

// Returns the number of means of a batch norm, or 0 if a check fails.
int64_t check_batch(Call& call, BatchNorm::Mode mode, std::initializer_list<const Tensor*> inputs) {
  const Tensor& in = **inputs.begin();
  if (!check_inputs(call, inputs) ||
      !call.require(TensorAccess::ndim(in) >= 2, Status::INVALID_PARAMETER, "the input has no channels")) {
    return 0;
  }
  const bool channels = mode == BatchNorm::Mode::PER_CHANNEL;
  for (const Tensor* tensor : inputs) {
    if (!call.require(
            channel_axis(*tensor) == channel_axis(in), Status::NOT_SUPPORTED, "the operands differ in format") ||
        !call.require(
            channels || TensorAccess::contiguous(*tensor), Status::NOT_SUPPORTED,
            "an operand is not contiguous, which PER_ACTIVATION requires")) {
      return 0;
    }
  }
  const int64_t* const dims = TensorAccess::dims(in);
  return channels ? dims[channel_axis(in)] : TensorAccess::elements(in) / dims[0];
}

constexpr size_t kBatchNormBackward = 100; // kBatchNormBackward + 1 in training. See results.h.

void copy_unless_there(at::Tensor& result, const at::Tensor& value) {
  if (!value.is_same(result)) {
    at::native::copy_(result, value);
  }
}

// The dimension of the means is the second one.
at::Tensor batch(BatchNorm::Mode mode, const Tensor& tensor, int64_t count) {
  return mode == BatchNorm::Mode::PER_CHANNEL ? alias_channels_second(tensor)
                                              : shaped(tensor, {TensorAccess::dims(tensor)[0], count});
}

// torch's out= overload returns wrong results if the input is not dense or the output has another memory order.
void run_batch_norm(
    at::Tensor out, const at::Tensor& in, const at::Tensor& weight, const at::Tensor& bias,
    const at::Tensor& running_mean, const at::Tensor& running_variance, at::Tensor& mean, at::Tensor& deviation,
    bool training, double momentum, double epsilon) {
  const at::Tensor dense = in.contiguous(in.suggest_memory_format());
  const bool direct = out.strides() == dense.strides();
  at::Tensor result = direct ? out : at::empty_like(dense);
  const Outputs given(result, mean, deviation);
  if (!training ||
      !batch_norm_into(
          result, dense, weight, bias, running_mean, running_variance, mean, deviation, momentum, epsilon)) {
    ops::native_batch_norm_out(
        result, mean, deviation, dense, weight, bias, running_mean, running_variance, training, momentum, epsilon);
  }
  given.keep();
  if (!direct) {
    at::native::copy_(out, result);
  }
}

} // namespace

Status BatchNorm::SetMode(Mode mode) {
  mode_ = mode;
  return Status::SUCCESS;
}

Status BatchNorm::SetEpsilon(double epsilon) { return set_epsilon(epsilon_, epsilon); }

Status BatchNorm::SetTraining(bool training) {
  training_ = training;
  return Status::SUCCESS;
}

Status BatchNorm::RunPure(
    Handle& handle, Tensor& out, const Tensor& in, const Tensor& mean, const Tensor& variance, const Tensor& weight,
    const Tensor& bias) const {
  const std::initializer_list<const Tensor*> operands = {&out, &in, &mean, &variance, &weight, &bias};
  return call<"musa::dnn::BatchNorm::RunPure">(handle, operands, [&](Call& call) {
    const int64_t count = check_batch(call, mode_, {&in, &out});
    if (count == 0 || !check_statistics(call, in, count, {&mean, &variance}) ||
        !check_parameters(call, count, {&weight, &bias})) {
      return call.status();
    }
    return call.enqueue([mode = mode_, epsilon = epsilon_, count, out = out, in = in, mean = mean, variance = variance,
                         weight = weight, bias = bias] {
      const ScalarType type = scalar_type(statistics_type(in));
      at::Tensor unused[] = {new_tensor({0}, type), new_tensor({0}, type)};
      run_batch_norm(
          batch(mode, out, count), batch(mode, in, count), parameter(weight, count, in), parameter(bias, count, in),
          shaped(mean, count), shaped(variance, count), unused[0], unused[1], /*training=*/false, /*momentum=*/0,
          epsilon);
    });
  });
}

Status BatchNorm::RunComposite(
    Handle& handle, Tensor& out, const Tensor& in, Tensor& running_mean, Tensor& running_variance, Tensor& mean,
    Tensor& inverse_deviation, const Tensor& weight, const Tensor& bias, double momentum,
    const MemoryMaintainer& workspace) const {
  const std::initializer_list<const Tensor*> operands = {
      &out, &in, &running_mean, &running_variance, &mean, &inverse_deviation, &weight, &bias};
  return call<"musa::dnn::BatchNorm::RunComposite">(handle, operands, [&](Call& call) {
    const int64_t count = check_batch(call, mode_, {&in, &out});
    if (count == 0 || !check_statistics(call, in, count, {&mean, &inverse_deviation}) ||
        !call.require(
            present(running_mean) == present(running_variance), Status::INVALID_PARAMETER,
            "only one of the running statistics is present") ||
        (present(running_mean) && !check_statistics(call, in, count, {&running_mean, &running_variance})) ||
        !check_parameters(call, count, {&weight, &bias})) {
      return call.status();
    }
    const auto sums = static_cast<size_t>(count) * 2 * sizeof(float);
    return call.enqueue(
        workspace, sums,
        [mode = mode_, epsilon = epsilon_, momentum, count, out = out, in = in, running_mean = running_mean,
         running_variance = running_variance, mean = mean, inverse_deviation = inverse_deviation, weight = weight,
         bias = bias] {
          at::Tensor saved_mean = shaped(mean, count);
          at::Tensor saved_deviation = shaped(inverse_deviation, count);
          run_batch_norm(
              batch(mode, out, count), batch(mode, in, count), parameter(weight, count, in, narrow(in)),
              parameter(bias, count, in), shaped(running_mean, count), shaped(running_variance, count), saved_mean,
              saved_deviation, /*training=*/true, momentum, epsilon);
        });
  });
}

Status BatchNorm::RunBwd(
    Handle& handle, Tensor& grad_in, Tensor& grad_mean, Tensor& grad_variance, Tensor& grad_weight, Tensor& grad_bias,
    const Tensor& in, const Tensor& grad_out, const Tensor& mean, const Tensor& deviation, const Tensor& weight,
    const MemoryMaintainer& workspace) const {
  const std::initializer_list<const Tensor*> operands = {&grad_in, &grad_mean, &grad_variance, &grad_weight, &grad_bias,
                                                         &in,      &grad_out,  &mean,          &deviation,   &weight};
  return call<"musa::dnn::BatchNorm::RunBwd">(handle, operands, [&](Call& call) {
    const int64_t count = present(grad_in) ? check_batch(call, mode_, {&in, &grad_out, &grad_in})
                                           : check_batch(call, mode_, {&in, &grad_out});
    if (count == 0 || !check_statistics(call, in, count, {&mean, &deviation}) ||
        !check_parameters(call, count, {&grad_mean, &grad_variance, &grad_weight, &grad_bias, &weight})) {
      return call.status();
    }
    const auto sums = static_cast<size_t>(count) * 2 * sizeof(float);
    return call.enqueue(
        workspace, sums,
        [mode = mode_, epsilon = epsilon_, training = training_, count, grad_in = grad_in, grad_mean = grad_mean,
         grad_variance = grad_variance, grad_weight = grad_weight, grad_bias = grad_bias, in = in, grad_out = grad_out,
         mean = mean, deviation = deviation, weight = weight] {
          const at::Tensor center = shaped(mean, count);
          const at::Tensor spread = shaped(deviation, count); // inverse deviation, or the running variance
          const ScalarType type = scalar_type(statistics_type(in));
          // torch's CUDA function creates the gradients of weight and bias like the weight, and accepts empty saved
          // statistics, but not undefined ones.
          const at::Tensor scale = parameter(weight, count, in, /*needed=*/!kOnHost || narrow(in));
          const at::Tensor none;
          const at::Tensor unsaved = kOnHost ? none : new_tensor({0}, type);
          const at::Tensor image = batch(mode, in, count);
          const at::Tensor gradient = batch(mode, grad_out, count);
          at::Tensor result = present(grad_in) ? batch(mode, grad_in, count) : at::Tensor();
          at::Tensor scales;
          at::Tensor shifts;
          const auto format = image.suggest_memory_format();
          if (kOnHost && image.is_contiguous(format) && gradient.is_contiguous(format) &&
              (!result.defined() || result.is_contiguous(format))) {
            scales = new_tensor(count, type);
            shifts = new_tensor(count, type);
            const Outputs given(result);
            at::native::batch_norm_cpu_backward_stub(
                c10::kCPU, result, scales, shifts, gradient, image, scale, training ? none : center,
                training ? none : spread, training ? center : none, training ? spread : none, training, epsilon);
            given.keep();
          } else {
            const auto make = [&] {
              at::Tensor input;
              if (training &&
                  batch_norm_gradients(input, scales, shifts, gradient, image, scale, center, spread, epsilon)) {
                return input;
              }
              std::tie(input, scales, shifts) = ops::native_batch_norm_backward(
                  gradient, image, scale, training ? none : center, training ? none : spread,
                  training ? center : unsaved, training ? spread : unsaved, training, epsilon,
                  {result.defined(), true, true});
              return input;
            };
            if (!result.defined()) {
              make();
            } else if (overlaps(result, {&gradient, &image})) {
              at::native::copy_(result, make());
            } else {
              const size_t key = key_of(kBatchNormBackward + training, {&result, &gradient, &image});
              copy_unless_there(result, make_in(result, key, make));
            }
          }
          store_given(grad_weight, scales);
          store_given(grad_bias, shifts);
          if (!present(grad_mean) && !present(grad_variance)) {
            return;
          }
          // The output is scale * inverse * (in - mean) + bias; these are its derivatives with respect to mean and
          // variance.
          at::Tensor inverse = spread;
          if (!training) {
            inverse = ops::add(spread, at::native::wrapped_scalar_tensor(epsilon), 1);
            ops::rsqrt_(inverse);
          }
          const at::Tensor slope = scale.defined() ? ops::mul(scale, inverse) : inverse;
          if (present(grad_mean)) {
            store_given(grad_mean, ops::mul(ops::mul(slope, shifts), at::native::wrapped_scalar_tensor(-1)));
          }
          if (present(grad_variance)) {
            const at::Tensor product = ops::mul(ops::mul(slope, inverse), scales);
            store_given(grad_variance, ops::mul(product, at::native::wrapped_scalar_tensor(-0.5)));
          }
        });
  });
}

Status LayerNorm::SetAxis(int count, const int* axes) { return set_axes(axes_, count, axes); }

Status LayerNorm::SetEpsilon(double epsilon) { return set_epsilon(epsilon_, epsilon); }

Status LayerNorm::SetVarMode(VarMode mode) {
  mode_ = mode;
  return Status::SUCCESS;
}

Status LayerNorm::Run(
    Handle& handle, Tensor& out, Tensor& mean, Tensor& rstd, const Tensor& in, const Tensor& weight, const Tensor& bias,
    const MemoryMaintainer& workspace) const {
  const std::initializer_list<const Tensor*> operands = {&out, &mean, &rstd, &in, &weight, &bias};
  return call<"musa::dnn::LayerNorm::Run">(handle, operands, [&](Call& call) {
    Rows rows;
    if (!check_inputs(call, {&in, &out}) || !make_rows(call, in, axes_, rows) ||
        !check_statistics(call, in, rows.count, {&mean, &rstd}) ||
        !check_parameters(call, rows.length, {&weight, &bias})) {
      return call.status();
    }
    return call.enqueue(
        workspace, 0,
        [epsilon = epsilon_, rows, out = out, mean = mean, rstd = rstd, in = in, weight = weight, bias = bias] {
          const ScalarType type = input_type(in, {&weight, &bias});
          Result result(out, {rows.count, rows.length}, type);
          at::Tensor means = shaped(mean, rows.count);
          at::Tensor deviations = shaped(rstd, rows.count);
          const Outputs statistics(means, deviations);
          at::native::LayerNormKernel(
              kDeviceType, in_type(shaped(in, {rows.count, rows.length}), type),
              parameter_of_rows(weight, rows.length, in, type),
              kOnHost ? parameter(bias, rows.length, in) : parameter_of_rows(bias, rows.length, in, type), rows.count,
              rows.length, epsilon, &result.tensor, &means, &deviations);
          statistics.keep();
          result.finish();
        });
  });
}

Status LayerNorm::RunBwd(
    Handle& handle, Tensor& grad_in, Tensor& grad_weight, Tensor& grad_bias, const Tensor& grad_out, const Tensor& in,
    const Tensor& mean, const Tensor& rstd, const Tensor& weight, const MemoryMaintainer& workspace) const {
  const std::initializer_list<const Tensor*> operands = {&grad_in, &grad_weight, &grad_bias, &grad_out,
                                                         &in,      &mean,        &rstd,      &weight};
  return call<"musa::dnn::LayerNorm::RunBwd">(handle, operands, [&](Call& call) {
    Rows rows;
    if (!(present(grad_in) ? check_inputs(call, {&in, &grad_out, &grad_in}) : check_inputs(call, {&in, &grad_out})) ||
        !make_rows(call, in, axes_, rows) || !check_statistics(call, in, rows.count, {&mean, &rstd}) ||
        !check_parameters(call, rows.length, {&grad_weight, &grad_bias, &weight})) {
      return call.status();
    }
    return call.enqueue(
        workspace, partial_sums(rows, 2),
        [rows, grad_in = grad_in, grad_weight = grad_weight, grad_bias = grad_bias, grad_out = grad_out, in = in,
         mean = mean, rstd = rstd, weight = weight] {
          const ScalarType computed = input_type(in, {&weight});
          const ScalarType type = kOnHost ? scalar_type(statistics_type(in)) : computed;
          Result input(grad_in, {rows.count, rows.length}, computed);
          Result scales(grad_weight, rows.length, type);
          Result shifts(grad_bias, rows.length, type);
          at::native::LayerNormBackwardKernel(
              kDeviceType, in_type(shaped(grad_out, {rows.count, rows.length}), computed),
              in_type(shaped(in, {rows.count, rows.length}), computed), shaped(mean, rows.count),
              shaped(rstd, rows.count), parameter_of_rows(weight, rows.length, in, computed), rows.count, rows.length,
              &input.tensor, &scales.tensor, &shifts.tensor);
          for (const Result* result : {&input, &scales, &shifts}) {
            result->finish();
          }
        });
  });
}

Status GroupNorm::SetEpsilon(double epsilon) { return set_epsilon(epsilon_, epsilon); }

Status GroupNorm::SetAxis(int axis) {
  axis_ = axis;
  return Status::SUCCESS;
}

Status GroupNorm::SetGroup(int groups) {
  if (groups <= 0) {
    return Status::INVALID_PARAMETER;
  }
  groups_ = groups;
  return Status::SUCCESS;
}

Status GroupNorm::Run(
    Handle& handle, Tensor& out, Tensor& mean, Tensor& rstd, const Tensor& in, const Tensor& weight,
    const Tensor& bias) const {
  const std::initializer_list<const Tensor*> operands = {&out, &mean, &rstd, &in, &weight, &bias};
  return call<"musa::dnn::GroupNorm::Run">(handle, operands, [&](Call& call) {
    const int ndim = TensorAccess::ndim(in);
    const int axis = axis_ < 0 ? axis_ + ndim : axis_;
    if (!check_inputs(call, {&in, &out}) ||
        !call.require(axis >= 1 && axis < ndim, Status::INVALID_PARAMETER, "the channel axis is out of range")) {
      return call.status();
    }
    const int64_t samples = TensorAccess::dims(in)[0];
    const int64_t channels = TensorAccess::dims(in)[axis];
    if (!call.require(
            channels % groups_ == 0, Status::INVALID_PARAMETER,
            "the number of channels is not a multiple of the number of groups") ||
        !check_statistics(call, in, samples * groups_, {&mean, &rstd}) ||
        !check_parameters(call, channels, {&weight, &bias})) {
      return call.status();
    }
    return call.enqueue([epsilon = epsilon_, groups = groups_, axis, samples, channels, out = out, mean = mean,
                         rstd = rstd, in = in, weight = weight, bias = bias] {
      const ScalarType type = input_type(in, {&weight, &bias});
      at::Tensor result = alias(out);
      at::Tensor input = alias(in);
      if (axis != 1) {
        result = result.movedim(axis, 1);
        input = input.movedim(axis, 1);
      }
      // CUDA's function takes contiguous input only, and the CPU's is faster in the order of the input.
      const auto [value, means, deviations] = ops::native_group_norm(
          in_type(input, type).contiguous(kOnHost ? input.suggest_memory_format() : at::MemoryFormat::Contiguous),
          parameter_of_rows(weight, channels, in, type),
          kOnHost ? parameter(bias, channels, in) : parameter_of_rows(bias, channels, in, type), samples, channels,
          input.numel() / (samples * channels), groups, epsilon);
      at::native::copy_(result, value);
      store_given(mean, means);
      store_given(rstd, deviations);
    });
  });
}

Status RMSNorm::SetEpsilon(double epsilon) { return set_epsilon(epsilon_, epsilon); }

Status RMSNorm::SetAxis(int count, const int* axes) { return set_axes(axes_, count, axes); }

Status RMSNorm::Run(Handle& handle, Tensor& out, Tensor& rstd, const Tensor& in, const Tensor& weight) const {
  return call<"musa::dnn::RMSNorm::Run">(handle, {&out, &rstd, &in, &weight}, [&](Call& call) {
    Rows rows;
    if (!check_inputs(call, {&in, &out}) || !make_rows(call, in, axes_, rows) ||
        !check_statistics(call, in, rows.count, {&rstd}) || !check_parameters(call, rows.length, {&weight})) {
      return call.status();
    }
    return call.enqueue([epsilon = epsilon_, rows, out = out, rstd = rstd, in = in, weight = weight] {
      const ScalarType type = scalar_type(statistics_type(in));
      const at::Tensor input = in_type(shaped(in, {rows.count, rows.length}), type);
      at::Tensor inverse = shaped(rstd, {rows.count, 1});
      const Outputs statistics(inverse);
      ops::linalg_vector_norm_out(inverse, input, 2, IntArrayRef(1), /*keepdim=*/true);
      ops::mul_(inverse, inverse);
      ops::mul_(inverse, at::native::wrapped_scalar_tensor(1.0 / static_cast<double>(rows.length)));
      ops::add_(inverse, at::native::wrapped_scalar_tensor(epsilon), 1);
      ops::rsqrt_(inverse);
      statistics.keep();
      Result result(out, {rows.count, rows.length}, type);
      ops::mul_out(result.tensor, input, inverse);
      if (present(weight)) {
        ops::mul_(result.tensor, parameter(weight, rows.length, in));
      }
      result.finish();
    });
  });
}

Status RMSNorm::RunBwd(
    Handle& handle, Tensor& grad_in, Tensor& grad_weight, const Tensor& grad_out, const Tensor& in, const Tensor& rstd,
    const Tensor& weight, const MemoryMaintainer& workspace) const {
  const std::initializer_list<const Tensor*> operands = {&grad_in, &grad_weight, &grad_out, &in, &rstd, &weight};
  return call<"musa::dnn::RMSNorm::RunBwd">(handle, operands, [&](Call& call) {
    Rows rows;
    if (!(present(grad_in) ? check_inputs(call, {&in, &grad_out, &grad_in}) : check_inputs(call, {&in, &grad_out})) ||
        !make_rows(call, in, axes_, rows) || !check_statistics(call, in, rows.count, {&rstd}) ||
        !check_parameters(call, rows.length, {&grad_weight, &weight})) {
      return call.status();
    }
    return call.enqueue(
        workspace, partial_sums(rows, 1),
        [rows, grad_in = grad_in, grad_weight = grad_weight, grad_out = grad_out, in = in, rstd = rstd,
         weight = weight] {
          // With r the inverse deviation, n the length and g = grad_out * weight:
          // grad_in = r * g - in * r^3 * sum(g * in) / n, grad_weight = sum over rows of grad_out * in * r.
          const ScalarType type = scalar_type(statistics_type(in));
          const at::Tensor input = in_type(shaped(in, {rows.count, rows.length}), type);
          const at::Tensor gradient = in_type(shaped(grad_out, {rows.count, rows.length}), type);
          const at::Tensor inverse = shaped(rstd, {rows.count, 1});
          const at::Tensor scale = parameter(weight, rows.length, in);
          at::Tensor product = ops::mul(gradient, input);
          if (present(grad_in)) {
            at::Tensor sums = new_tensor({rows.count}, type);
            if (scale.defined()) {
              ops::addmv_out(sums, sums, product, scale, /*beta=*/0);
            } else {
              ops::sum_out(sums, product, IntArrayRef(1));
            }
            at::Tensor pull = ops::mul(ops::mul(inverse, inverse), inverse);
            ops::mul_(pull, sums.view({rows.count, 1}));
            Result result(grad_in, {rows.count, rows.length}, type);
            ops::mul_out(result.tensor, gradient, inverse);
            if (scale.defined()) {
              ops::mul_(result.tensor, scale);
            }
            ops::addcmul_(result.tensor, input, pull, -1.0 / static_cast<double>(rows.length));
            result.finish();
          }
          if (present(grad_weight)) {
            ops::mul_(product, inverse);
            Result result(grad_weight, rows.length, type);
            ops::sum_out(result.tensor, product, IntArrayRef(0));
            result.finish();
          }
        });
  });
}

} // namespace musa::dnn
