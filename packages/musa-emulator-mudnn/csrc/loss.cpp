// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// NLLLoss, KLDivLoss, CrossEntropyLoss, CTCLoss.
#include <ATen/ScalarOps.h>
#include <ATen/ops/_ctc_loss_backward_cpu_dispatch.h>
#include <ATen/ops/_ctc_loss_cpu_dispatch.h>
#include <ATen/ops/_log_softmax_backward_data_cpu_dispatch.h>
#include <ATen/ops/_log_softmax_cpu_dispatch.h>
#include <ATen/ops/addcmul_cpu_dispatch.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/div_cpu_dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eq_cpu_dispatch.h>
#include <ATen/ops/exp_cpu_dispatch.h>
#include <ATen/ops/fill_cpu_dispatch.h>
#include <ATen/ops/masked_fill_cpu_dispatch.h>
#include <ATen/ops/mul_cpu_dispatch.h>
#include <ATen/ops/neg_cpu_dispatch.h>
#include <ATen/ops/nll_loss2d_backward_cpu_dispatch.h>
#include <ATen/ops/nll_loss2d_forward_cpu_dispatch.h>
#include <ATen/ops/nll_loss_backward_cpu_dispatch.h>
#include <ATen/ops/nll_loss_forward_cpu_dispatch.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scatter_add_cpu_dispatch.h>
#include <ATen/ops/sub_cpu_dispatch.h>
#include <ATen/ops/take_cpu_dispatch.h>
#include <ATen/ops/xlogy_cpu_dispatch.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "support/alias.h"
#include "support/call.h"
#include "support/outputs.h"
#include "support/shapes.h"

namespace musa::dnn {
namespace {

using namespace musa_emulator::dnn;

using at::Scalar;
using c10::ScalarType;

bool integral(const Tensor& tensor) { return has_type(tensor, {Tensor::Type::INT64, Tensor::Type::INT32}); }

// Returns the type of the computation: 16-bit inputs are summed in FLOAT.
ScalarType compute_type(const Tensor& in) { return has_type(in, {Tensor::Type::DOUBLE}) ? at::kDouble : at::kFloat; }

at::Tensor in_type(const Tensor& tensor, ScalarType type) {
  const at::Tensor own = alias(tensor);
  return !own.defined() || own.scalar_type() == type ? own : own.to(type);
}

at::Tensor number(const Scalar& value) { return at::native::wrapped_scalar_tensor(value); }

void store(const Tensor& target, const at::Tensor& value) {
  at::Tensor result = alias(target);
  at::native::copy_(result, value.reshape(result.sizes()));
}

bool check_present(Call& call, std::initializer_list<const Tensor*> tensors) {
  return call.require(
      std::all_of(tensors.begin(), tensors.end(), [](const Tensor* tensor) { return present(*tensor); }),
      Status::INVALID_PARAMETER, "an operand is absent");
}

bool check_floating(Call& call, std::initializer_list<const Tensor*> tensors) {
  return check_present(call, tensors) &&
      call.require(
          std::all_of(tensors.begin(), tensors.end(), [](const Tensor* tensor) { return floating(*tensor); }),
          Status::NOT_SUPPORTED, "an operand does not have a floating type");
}

// Whether it is a single number: 0-dim, or 1-d of size 1.
bool single(const Tensor& tensor) { return TensorAccess::ndim(tensor) <= 1 && TensorAccess::elements(tensor) == 1; }

// The classes are the second dimension of the input, or the only one.
int class_axis(const Tensor& in) { return TensorAccess::ndim(in) > 1 ? 1 : 0; }

int64_t classes(const Tensor& in) { return TensorAccess::dims(in)[class_axis(in)]; }

int64_t batch_size(const Tensor& in) { return TensorAccess::ndim(in) > 1 ? TensorAccess::dims(in)[0] : 1; }

// Whether the tensor has one number per class index: the shape of the input without the classes.
bool has_label_shape(const Tensor& tensor, const Tensor& in) {
  const int ndim = TensorAccess::ndim(in);
  if (ndim == 1) {
    return single(tensor);
  }
  const int64_t* const dims = TensorAccess::dims(tensor);
  return TensorAccess::ndim(tensor) == ndim - 1 && dims[0] == TensorAccess::dims(in)[0] &&
      std::equal(dims + 1, dims + ndim - 1, TensorAccess::dims(in) + 2);
}

bool check_weight(Call& call, const Tensor& weight, const Tensor& in) {
  return !present(weight) ||
      (call.require(
           TensorAccess::ndim(weight) == 1 && TensorAccess::elements(weight) == classes(in), Status::INVALID_PARAMETER,
           "the weight does not have one element per class") &&
       call.require(floating(weight), Status::NOT_SUPPORTED, "the weight does not have a floating type"));
}

size_t sum_bytes(const Tensor& in) {
  return static_cast<size_t>(std::max<int64_t>(TensorAccess::elements(in) / classes(in), 1)) * sizeof(float);
}

// Raises for a label that is not a class, because torch's CPU functions would read or write outside of memory. Operands
// on a GPU are left to its kernels.
void check_labels(const at::Tensor& labels, int64_t first, int64_t count, int64_t classes, int64_t ignored) {
  const int64_t* const label = labels.const_data_ptr<int64_t>();
  for (int64_t i = first; i < std::min(first + count, labels.numel()); ++i) {
    TORCH_CHECK_INDEX(
        label[i] == ignored || (label[i] >= 0 && label[i] < classes), "label ", label[i], " is out of the range of ",
        classes, " classes");
  }
}

void check_sequences(
    const Tensor& log_probabilities, const Tensor& targets, const Tensor& target_lengths, int64_t blank) {
  const at::Tensor labels = in_type(targets, at::kLong).contiguous();
  const at::Tensor lengths = in_type(target_lengths, at::kLong).contiguous();
  int64_t start = 0;
  for (int64_t sample = 0; sample < lengths.numel(); ++sample) {
    const int64_t length = lengths.const_data_ptr<int64_t>()[sample];
    check_labels(labels, start, length, TensorAccess::dims(log_probabilities)[2], blank);
    start += labels.dim() == 2 ? labels.size(1) : length;
  }
}

// --- negative log likelihood -----------------------------------------------------------------------------------------

int64_t torch_reduction(NLLLoss::Mode mode) {
  return static_cast<int64_t>(mode == NLLLoss::Mode::BATCHMEAN ? NLLLoss::Mode::SUM : mode);
}

bool check_nll(
    Call& call, NLLLoss::Mode mode, const Tensor& in, const Tensor& loss, const Tensor& target, const Tensor& weight,
    const Tensor& total_weight) {
  return check_floating(call, {&in, &loss, &total_weight}) && check_present(call, {&target}) &&
      call.require(TensorAccess::ndim(in) >= 1, Status::INVALID_PARAMETER, "the input has no classes") &&
      call.require(integral(target), Status::NOT_SUPPORTED, "the target is neither INT64 nor INT32") &&
      call.require(
          has_label_shape(target, in), Status::INVALID_PARAMETER, "the shapes of target and input do not match") &&
      call.require(
          mode == NLLLoss::Mode::NONE ? has_label_shape(loss, in) : single(loss), Status::INVALID_PARAMETER,
          "the shape of the loss does not match the reduction") &&
      call.require(single(total_weight), Status::INVALID_PARAMETER, "the total weight is not one number") &&
      check_weight(call, weight, in);
}

// The operands with the ranks that torch supports for this loss: 1 and 2, or 4 with 2-d positions.
class TorchRanks {
 public:
  explicit TorchRanks(const Tensor& in)
      : ndim_(TensorAccess::ndim(in)), samples_(batch_size(in)), classes_(classes(in)) {}
  bool planar() const { return ndim_ > 2; }
  double samples() const { return static_cast<double>(samples_); }
  at::Tensor input(const at::Tensor& in) const {
    return planar() && ndim_ != 4 ? in.reshape({samples_, classes_, 1, -1}) : in;
  }
  // For tensors of the target's shape.
  at::Tensor label(const at::Tensor& tensor) const {
    return ndim_ == 1 ? tensor.reshape({}) : planar() && ndim_ != 4 ? tensor.reshape({samples_, 1, -1}) : tensor;
  }

 private:
  int ndim_;
  int64_t samples_;
  int64_t classes_;
};

// --- divergence ------------------------------------------------------------------------------------------------------

// Returns the divisor of the sum.
double divisor(KLDivLoss::Mode mode, const Tensor& in) {
  return mode == KLDivLoss::Mode::MEAN ? static_cast<double>(TensorAccess::elements(in))
      : mode == KLDivLoss::Mode::BATCHMEAN && TensorAccess::ndim(in) > 0
      ? static_cast<double>(TensorAccess::dims(in)[0])
      : 1.0;
}

bool check_divergence(Call& call, KLDivLoss::Mode mode, const Tensor& in, const Tensor& target, const Tensor& loss) {
  return check_floating(call, {&in, &target, &loss}) &&
      call.require(same_shape(in, target), Status::INVALID_PARAMETER, "input and target differ in shape") &&
      call.require(
          mode == KLDivLoss::Mode::NONE ? same_shape(loss, in) : single(loss), Status::INVALID_PARAMETER,
          "the shape of the loss does not match the reduction");
}

// --- cross entropy ---------------------------------------------------------------------------------------------------

// Labels are class indices, or one probability per class.
bool check_cross_entropy(
    Call& call, CrossEntropyLoss::ReductionMode mode, const Tensor& in, const Tensor& loss, const Tensor& label,
    const Tensor& weight) {
  return check_floating(call, {&in, &loss}) && check_present(call, {&label}) &&
      call.require(TensorAccess::ndim(in) >= 1, Status::INVALID_PARAMETER, "the input has no classes") &&
      call.require(
          integral(label) || floating(label), Status::NOT_SUPPORTED,
          "the type of the labels is neither INT64, INT32 nor floating") &&
      call.require(
          integral(label) ? has_label_shape(label, in) : same_shape(label, in), Status::INVALID_PARAMETER,
          "the shapes of labels and input do not match") &&
      call.require(
          mode == CrossEntropyLoss::ReductionMode::NONE ? has_label_shape(loss, in) : single(loss),
          Status::INVALID_PARAMETER, "the shape of the loss does not match the reduction") &&
      check_weight(call, weight, in);
}

// Adds a batch dimension, and a class dimension if `classes` is true.
at::Tensor batched(const Tensor& tensor, ScalarType type, const Tensor& in, bool classes) {
  const at::Tensor own = in_type(tensor, type);
  if (TensorAccess::ndim(in) > 1) {
    return own;
  }
  return classes ? own.unsqueeze(0) : own.reshape({1});
}

// Views one number per class such that it broadcasts to tensors with `ndim` dimensions.
at::Tensor along_classes(const at::Tensor& weight, int64_t ndim) {
  std::vector<int64_t> shape(static_cast<size_t>(ndim), 1);
  shape[1] = weight.size(0);
  return weight.view(shape);
}

struct CrossEntropyGradient {
  CrossEntropyLoss::ReductionMode mode;
  double smoothing;
  int64_t ignore;

  // Gradient with respect to the log-probabilities; grad_out has size 1 in the class dimension, or one element.
  at::Tensor of_indices(const at::Tensor& log, at::Tensor label, const at::Tensor& weight, at::Tensor grad_out) const {
    const at::Tensor ignored = ops::eq(label, Scalar(ignore));
    label = label.clone();
    ops::masked_fill_(label, ignored, 0); // replaced by a valid index
    at::Tensor own =
        weight.defined() ? ops::take(weight, label) : at::ones(label.sizes(), options_of(log.scalar_type()));
    ops::masked_fill_(own, ignored, 0);
    if (mode == CrossEntropyLoss::ReductionMode::MEAN) {
      grad_out = ops::div(grad_out, own.sum());
    }
    at::Tensor result = at::zeros(log.sizes(), options_of(log.scalar_type()));
    if (smoothing > 0) {
      const Scalar share(smoothing / static_cast<double>(log.size(1)));
      ops::fill_(result, share);
      if (weight.defined()) {
        ops::mul_(result, along_classes(weight, log.dim()));
      }
      ops::mul_(result, grad_out);
    }
    own = ops::mul(ops::mul(own, number(1 - smoothing)), grad_out);
    ops::scatter_add_(result, 1, label, own);
    ops::masked_fill_(result, ignored, 0);
    return ops::neg_(result);
  }

  at::Tensor of_probabilities(
      const at::Tensor& log, const at::Tensor& label, const at::Tensor& weight, at::Tensor grad_out) const {
    const auto count = static_cast<double>(log.size(1));
    if (mode == CrossEntropyLoss::ReductionMode::MEAN) {
      grad_out = ops::mul(grad_out, number(count / static_cast<double>(log.numel())));
    }
    at::Tensor result = ops::mul(label, number(smoothing - 1));
    if (smoothing > 0) {
      ops::sub_(result, number(smoothing / count), 1);
    }
    if (weight.defined()) {
      ops::mul_(result, along_classes(weight, log.dim()));
    }
    return ops::mul_(result, grad_out);
  }
};

// --- connectionist temporal classification ---------------------------------------------------------------------------

bool check_ctc(
    Call& call, int64_t longest, int64_t blank, const Tensor& log_probabilities, const Tensor& targets,
    const Tensor& input_lengths, const Tensor& target_lengths, const Tensor& loss, const Tensor& log_alpha) {
  if (!check_present(call, {&log_probabilities, &targets, &input_lengths, &target_lengths, &loss, &log_alpha}) ||
      !call.require(
          has_type(log_probabilities, {Tensor::Type::FLOAT, Tensor::Type::DOUBLE}), Status::NOT_SUPPORTED,
          "the probabilities are neither FLOAT nor DOUBLE") ||
      !call.require(
          has_type(loss, {TensorAccess::type(log_probabilities)}) &&
              has_type(log_alpha, {TensorAccess::type(log_probabilities)}),
          Status::INVALID_PARAMETER, "loss or log_alpha and the probabilities differ in type") ||
      !call.require(
          integral(targets) && integral(input_lengths) && integral(target_lengths), Status::NOT_SUPPORTED,
          "targets or lengths are neither INT64 nor INT32") ||
      !call.require(
          TensorAccess::ndim(log_probabilities) == 3, Status::INVALID_PARAMETER,
          "the probabilities do not have the dimensions time, batch, class")) {
    return false;
  }
  const int64_t* const dims = TensorAccess::dims(log_probabilities);
  const auto per_sample = [&](const Tensor& tensor) {
    return TensorAccess::ndim(tensor) == 1 && TensorAccess::dims(tensor)[0] == dims[1];
  };
  const int64_t* const alpha = TensorAccess::dims(log_alpha);
  return call.require(
             blank >= 0 && blank < dims[2], Status::INVALID_PARAMETER, "the blank is not one of the classes") &&
      call.require(
          per_sample(loss) && per_sample(input_lengths) && per_sample(target_lengths), Status::INVALID_PARAMETER,
          "the loss or the lengths do not have one element per sample") &&
      call.require(
          TensorAccess::ndim(targets) == 1 ||
              (TensorAccess::ndim(targets) == 2 && TensorAccess::dims(targets)[0] == dims[1]),
          Status::INVALID_PARAMETER, "the targets are neither concatenated nor one row per sample") &&
      call.require(
          TensorAccess::ndim(log_alpha) == 3 && alpha[0] == dims[1] && alpha[1] == dims[0] &&
              alpha[2] >= 2 * longest + 1,
          Status::INVALID_PARAMETER, "log_alpha is not batch x time x (2 * longest target + 1)");
}

} // namespace

Status NLLLoss::SetReductionMode(Mode mode) {
  if (mode < Mode::NONE || mode > Mode::BATCHMEAN) { // callers cast torch's value
    return Status::INVALID_PARAMETER;
  }
  mode_ = mode;
  return Status::SUCCESS;
}

Status NLLLoss::SetIgnoreIndex(int index) {
  ignore_ = index;
  return Status::SUCCESS;
}

Status NLLLoss::Run(
    Handle& handle, Tensor& out, Tensor& total_weight, const Tensor& in, const Tensor& target, const Tensor& weight,
    const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::NLLLoss::Run">(handle, {&out, &total_weight, &in, &target, &weight}, [&](Call& call) {
    if (!check_nll(call, mode_, in, out, target, weight, total_weight)) {
      return call.status();
    }
    return call.enqueue(
        workspace, sum_bytes(in),
        [mode = mode_, ignore = ignore_, out = out, total_weight = total_weight, in = in, target = target,
         weight = weight] {
          const ScalarType type = compute_type(in);
          const TorchRanks ranks(in);
          const auto forward = ranks.planar() ? ops::nll_loss2d_forward : ops::nll_loss_forward;
          const auto [loss, total] = forward(
              ranks.input(in_type(in, type)), ranks.label(in_type(target, at::kLong)), in_type(weight, type),
              torch_reduction(mode), ignore);
          store(out, mode == Mode::BATCHMEAN ? ops::div(loss, number(ranks.samples())) : loss);
          store(total_weight, total);
        });
  });
}

Status NLLLoss::RunBwd(
    Handle& handle, Tensor& grad_in, const Tensor& grad_out, const Tensor& target, const Tensor& weight,
    const Tensor& total_weight, const MemoryMaintainer& workspace) const {
  const std::initializer_list<const Tensor*> operands = {&grad_in, &grad_out, &target, &weight, &total_weight};
  return call<"musa::dnn::NLLLoss::RunBwd">(handle, operands, [&](Call& call) {
    if (!check_nll(call, mode_, grad_in, grad_out, target, weight, total_weight)) {
      return call.status();
    }
    return call.enqueue(
        workspace, 0,
        [mode = mode_, ignore = ignore_, grad_in = grad_in, grad_out = grad_out, target = target, weight = weight,
         total_weight = total_weight] {
          const ScalarType type = compute_type(grad_in);
          const TorchRanks ranks(grad_in);
          const at::Tensor whole = alias(grad_in);
          const at::Tensor own = ranks.input(whole);
          const bool direct = whole.scalar_type() == type && own.is_contiguous() && own.data_ptr() == whole.data_ptr();
          at::Tensor gradient = direct ? own : new_tensor(own.sizes(), type);
          at::Tensor outer = in_type(grad_out, type);
          outer = mode == Mode::NONE ? ranks.label(outer) : outer.reshape({});
          if (mode == Mode::BATCHMEAN) {
            outer = ops::div(outer, number(ranks.samples()));
          }
          // torch uses only the shape of the input here.
          const at::Tensor& input = gradient;
          const at::Tensor labels = ranks.label(in_type(target, at::kLong)).contiguous();
          if (kOnHost) {
            check_labels(labels, 0, labels.numel(), classes(grad_in), ignore);
          }
          const auto backward = ranks.planar() ? ops::nll_loss2d_backward_out : ops::nll_loss_backward_out;
          backward(
              gradient, outer, input, labels, in_type(weight, type), torch_reduction(mode), ignore,
              in_type(total_weight, type).reshape({}));
          if (!direct) {
            store(grad_in, gradient);
          }
        });
  });
}

Status KLDivLoss::SetReductionMode(Mode mode) {
  if (mode < Mode::NONE || mode > Mode::BATCHMEAN) {
    return Status::INVALID_PARAMETER;
  }
  mode_ = mode;
  return Status::SUCCESS;
}

Status KLDivLoss::SetLogTarget(bool log_target) {
  log_target_ = log_target;
  return Status::SUCCESS;
}

Status KLDivLoss::Run(
    Handle& handle, Tensor& out, const Tensor& in, const Tensor& target, const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::KLDivLoss::Run">(handle, {&out, &in, &target}, [&](Call& call) {
    if (!check_divergence(call, mode_, in, target, out)) {
      return call.status();
    }
    const size_t bytes = mode_ == Mode::NONE ? 0 : 1024 * sizeof(float);
    return call.enqueue(
        workspace, bytes, [mode = mode_, log_target = log_target_, out = out, in = in, target = target] {
          const ScalarType type = compute_type(in);
          const at::Tensor input = in_type(in, type);
          const at::Tensor wanted = in_type(target, type);
          at::Tensor result = alias(out);
          const bool direct = mode == Mode::NONE && result.scalar_type() == type;
          at::Tensor terms = direct ? result : new_tensor(input.sizes(), type);
          const Outputs given(terms);
          if (log_target) { // exp(t) * (t - x)
            ops::sub_out(terms, wanted, input, 1);
            ops::mul_(terms, ops::exp(wanted));
          } else { // t * log(t) - t * x
            ops::xlogy_out(terms, wanted, wanted);
            ops::addcmul_(terms, wanted, input, -1);
          }
          given.keep();
          if (mode != Mode::NONE) {
            store(out, ops::div(terms.sum(), number(divisor(mode, in))));
          } else if (!direct) {
            at::native::copy_(result, terms);
          }
        });
  });
}

Status KLDivLoss::RunBwd(
    Handle& handle, Tensor& grad_in, const Tensor& grad_out, const Tensor& in, const Tensor& target) const {
  return call<"musa::dnn::KLDivLoss::RunBwd">(handle, {&grad_in, &grad_out, &in, &target}, [&](Call& call) {
    if (!check_divergence(call, mode_, in, target, grad_out) || !check_floating(call, {&grad_in}) ||
        !call.require(same_shape(grad_in, in), Status::INVALID_PARAMETER, "grad_in and in differ in shape")) {
      return call.status();
    }
    return call.enqueue(
        [mode = mode_, log_target = log_target_, grad_in = grad_in, grad_out = grad_out, in = in, target = target] {
          const ScalarType type = compute_type(in);
          at::Tensor scale = in_type(grad_out, type);
          if (mode != Mode::NONE) {
            scale = scale.reshape({});
          }
          scale = ops::div(scale, number(-divisor(mode, in)));
          const at::Tensor wanted = in_type(target, type);
          at::Tensor result = alias(grad_in);
          const Outputs given(result);
          ops::mul_out(result, log_target ? ops::exp(wanted) : wanted, scale);
          given.keep();
        });
  });
}

Status CrossEntropyLoss::SetReductionMode(ReductionMode mode) {
  if (mode < ReductionMode::NONE || mode > ReductionMode::SUM) {
    return Status::INVALID_PARAMETER;
  }
  mode_ = mode;
  return Status::SUCCESS;
}

Status CrossEntropyLoss::SetLabelSmoothing(float smoothing) {
  if (!(smoothing >= 0 && smoothing <= 1)) {
    return Status::INVALID_PARAMETER;
  }
  smoothing_ = smoothing;
  return Status::SUCCESS;
}

Status CrossEntropyLoss::SetIgnoreIndex(int64_t index) {
  ignore_ = index;
  return Status::SUCCESS;
}

Status CrossEntropyLoss::Run(
    Handle& handle, Tensor& out, const Tensor& in, const Tensor& label, const Tensor& weight,
    const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::CrossEntropyLoss::Run">(handle, {&out, &in, &label, &weight}, [&](Call& call) {
    if (!check_cross_entropy(call, mode_, in, out, label, weight)) {
      return call.status();
    }
    // Maximum and sum of each row.
    return call.enqueue(
        workspace, 2 * sum_bytes(in),
        [mode = mode_, smoothing = smoothing_, ignore = ignore_, out = out, in = in, label = label, weight = weight] {
          const ScalarType type = compute_type(in);
          const ScalarType label_type = integral(label) ? at::kLong : type;
          store(
              out,
              at::cross_entropy_loss(
                  batched(in, type, in, /*classes=*/true), batched(label, label_type, in, /*classes=*/!integral(label)),
                  in_type(weight, type), static_cast<int64_t>(mode), ignore, smoothing));
        });
  });
}

Status CrossEntropyLoss::RunBwd(
    Handle& handle, Tensor& grad_in, const Tensor& in, const Tensor& grad_out, const Tensor& label,
    const Tensor& weight, const MemoryMaintainer& workspace) const {
  const std::initializer_list<const Tensor*> operands = {&grad_in, &in, &grad_out, &label, &weight};
  return call<"musa::dnn::CrossEntropyLoss::RunBwd">(handle, operands, [&](Call& call) {
    if (!check_cross_entropy(call, mode_, in, grad_out, label, weight) || !check_floating(call, {&grad_in}) ||
        !call.require(same_shape(grad_in, in), Status::INVALID_PARAMETER, "grad_in and in differ in shape")) {
      return call.status();
    }
    return call.enqueue(
        workspace, 2 * sum_bytes(in),
        [mode = mode_, smoothing = smoothing_, ignore = ignore_, grad_in = grad_in, in = in, grad_out = grad_out,
         label = label, weight = weight] {
          const ScalarType type = compute_type(in);
          const at::Tensor log = ops::_log_softmax(batched(in, type, in, /*classes=*/true), 1, false);
          const at::Tensor outer = mode == ReductionMode::NONE
              ? batched(grad_out, type, in, /*classes=*/false).unsqueeze(1)
              : in_type(grad_out, type).reshape({});
          const CrossEntropyGradient gradient{mode, smoothing, ignore};
          const at::Tensor weights = in_type(weight, type);
          const at::Tensor by_log = integral(label)
              ? gradient.of_indices(log, batched(label, at::kLong, in, /*classes=*/false).unsqueeze(1), weights, outer)
              : gradient.of_probabilities(log, batched(label, type, in, /*classes=*/true), weights, outer);
          store(grad_in, ops::_log_softmax_backward_data(by_log, log, 1, type));
        });
  });
}

Status CTCLoss::SetBlank(int64_t blank) {
  blank_ = blank;
  return Status::SUCCESS;
}

Status CTCLoss::SetZeroInfinity(bool zero_infinity) {
  zero_infinity_ = zero_infinity;
  return Status::SUCCESS;
}

Status CTCLoss::SetMaxTargetLength(int64_t length) {
  if (length < 0) {
    return Status::INVALID_PARAMETER;
  }
  max_target_ = length;
  return Status::SUCCESS;
}

Status CTCLoss::Run(
    Handle& handle, Tensor& loss, Tensor& log_alpha, const Tensor& log_probabilities, const Tensor& targets,
    const Tensor& input_lengths, const Tensor& target_lengths) const {
  const std::initializer_list<const Tensor*> operands = {&loss,    &log_alpha,     &log_probabilities,
                                                         &targets, &input_lengths, &target_lengths};
  return call<"musa::dnn::CTCLoss::Run">(handle, operands, [&](Call& call) {
    if (!check_ctc(
            call, max_target_, blank_, log_probabilities, targets, input_lengths, target_lengths, loss, log_alpha)) {
      return call.status();
    }
    return call.enqueue([blank = blank_, zero_infinity = zero_infinity_, loss = loss, log_alpha = log_alpha,
                         log_probabilities = log_probabilities, targets = targets, input_lengths = input_lengths,
                         target_lengths = target_lengths] {
      if (kOnHost) {
        check_sequences(log_probabilities, targets, target_lengths, blank);
      }
      const auto [losses, alphas] = ops::_ctc_loss(
          alias(log_probabilities), alias(targets), alias(input_lengths), alias(target_lengths), blank, zero_infinity);
      store(loss, losses);
      // The caller's memory has room for the longest possible target, torch's result for the longest actual one.
      at::Tensor result = alias(log_alpha);
      TORCH_CHECK(alphas.size(2) <= result.size(2), "a target is longer than SetMaxTargetLength allows");
      at::Tensor used = result.narrow(2, 0, alphas.size(2));
      if (alphas.size(2) < result.size(2)) {
        ops::fill_(result, -std::numeric_limits<double>::infinity());
      }
      at::native::copy_(used, alphas);
    });
  });
}

Status CTCLoss::RunBwd(
    Handle& handle, Tensor& grad_in, const Tensor& grad_out, const Tensor& log_probabilities, const Tensor& targets,
    const Tensor& input_lengths, const Tensor& target_lengths, const Tensor& loss, const Tensor& log_alpha,
    const MemoryMaintainer& workspace) const {
  const std::initializer_list<const Tensor*> operands = {
      &grad_in, &grad_out, &log_probabilities, &targets, &input_lengths, &target_lengths, &loss, &log_alpha};
  return call<"musa::dnn::CTCLoss::RunBwd">(handle, operands, [&](Call& call) {
    if (!check_ctc(
            call, max_target_, blank_, log_probabilities, targets, input_lengths, target_lengths, loss, log_alpha) ||
        !check_present(call, {&grad_in, &grad_out}) ||
        !call.require(
            same_shape(grad_in, log_probabilities) && same_shape(grad_out, loss), Status::INVALID_PARAMETER,
            "a gradient and its operand differ in shape") ||
        !call.require(
            has_type(grad_in, {TensorAccess::type(loss)}) && has_type(grad_out, {TensorAccess::type(loss)}),
            Status::INVALID_PARAMETER, "a gradient and the probabilities differ in type")) {
      return call.status();
    }
    // The backward sums are as large as the forward sums in log_alpha.
    const auto bytes = static_cast<size_t>(TensorAccess::elements(log_alpha)) *
        (has_type(loss, {Tensor::Type::DOUBLE}) ? sizeof(double) : sizeof(float));
    return call.enqueue(
        workspace, bytes,
        [blank = blank_, zero_infinity = zero_infinity_, grad_in = grad_in, grad_out = grad_out,
         log_probabilities = log_probabilities, targets = targets, input_lengths = input_lengths,
         target_lengths = target_lengths, loss = loss, log_alpha = log_alpha] {
          if (kOnHost) {
            check_sequences(log_probabilities, targets, target_lengths, blank);
          }
          store(
              grad_in,
              ops::_ctc_loss_backward(
                  alias(grad_out), alias(log_probabilities), alias(targets), alias(input_lengths),
                  alias(target_lengths), alias(loss), alias(log_alpha), blank, zero_infinity));
        });
  });
}

} // namespace musa::dnn
