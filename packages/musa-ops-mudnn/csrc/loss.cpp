// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// NLL, CTC and MSE loss.
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/nll_loss_backward_meta.h>
#include <ATen/ops/nll_loss_forward_meta.h>
#include <musa_runtime/mudnn.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "families.h"
#include "support/call.h"
#include "support/elementwise.h"
#include "support/indices.h"
#include "support/structured.h"

namespace musa_ops_mudnn {
namespace {

// A 0-dim tensor is described as a vector of one element, because not all operations support 0-dim tensors.
dnn::Tensor describe_values(const at::Tensor& tensor, Access access = Access::Write) {
  return tensor.dim() == 0 ? describe_as(tensor, {1}, {1}, access) : describe(tensor, access);
}

bool takes_out(const at::Tensor& out, const at::Tensor& like) {
  return out.is_privateuseone() && out.layout() == at::kStrided && out.scalar_type() == like.scalar_type() &&
      out.device() == like.device();
}

bool is_reduction(int64_t reduction) {
  return reduction == at::Reduction::None || reduction == at::Reduction::Mean || reduction == at::Reduction::Sum;
}

// ---- negative log likelihood

// A single sample is described as a batch of one, whose only loss equals its sum.
dnn::NLLLoss nll_operation(const at::Tensor& self, int64_t reduction, int64_t ignore_index) {
  const bool sample = self.dim() == 1 && reduction == at::Reduction::None;
  dnn::NLLLoss op;
  check(
      op.SetReductionMode(static_cast<dnn::NLLLoss::Mode>(sample ? int64_t{at::Reduction::Sum} : reduction)),
      "NLLLoss::SetReductionMode");
  check(op.SetIgnoreIndex(static_cast<int>(ignore_index)), "NLLLoss::SetIgnoreIndex");
  return op;
}

dnn::Tensor describe_samples(const at::Tensor& tensor, Access access = Access::Write) {
  return tensor.dim() == 1 ? describe_as(tensor, {1, tensor.size(0)}, {tensor.size(0), 1}, access)
                           : describe(tensor, access);
}

Operand contiguous_weights(const at::Tensor* tensor) {
  return tensor != nullptr && tensor->defined() ? contiguous(*tensor) : Operand(at::Tensor());
}

void run_nll(
    const at::Tensor& self, const at::Tensor& target, const at::Tensor* weight, int64_t reduction, int64_t ignore_index,
    const at::Tensor& out, const at::Tensor& total_weight) {
  const dnn::NLLLoss op = nll_operation(self, reduction, ignore_index);
  const Operand in = contiguous(self);
  const Operand labels = contiguous(target);
  const Operand weights = contiguous_weights(weight);
  require_labels(labels, ignore_index, self.size(self.dim() == 1 ? 0 : 1));
  write_contiguous(out, [&](const at::Tensor& loss) {
    const OnDevice on(loss);
    dnn::Tensor result = describe_values(loss);
    dnn::Tensor total = describe_values(total_weight);
    check(
        op.Run(
            on.handle(), result, total, describe_samples(in, kRead), describe_values(labels, kRead), operand(weights),
            on.workspace()),
        "NLLLoss::Run", {&loss, &*in, &*labels, &*weights});
  });
}

void run_nll_backward(
    const at::Tensor& grad_output, const at::Tensor& target, const at::Tensor* weight, int64_t reduction,
    int64_t ignore_index, const at::Tensor& total_weight, const at::Tensor& out) {
  const dnn::NLLLoss op = nll_operation(out, reduction, ignore_index);
  const Operand gradient = contiguous(grad_output);
  const Operand labels = contiguous(target);
  const Operand weights = contiguous_weights(weight);
  write_contiguous(out, [&](const at::Tensor& grad_input) {
    const OnDevice on(grad_input);
    dnn::Tensor result = describe_samples(grad_input);
    check(
        op.RunBwd(
            on.handle(), result, describe_values(gradient, kRead), describe_values(labels, kRead), operand(weights),
            describe_values(total_weight, kRead), on.workspace()),
        "NLLLoss::RunBwd", {&grad_input, &*gradient, &*labels, &*weights});
  });
}

// Whether `target` has a label for each position of the scores without their class dimension, and `weight` one element
// per class.
bool nll_operands_served(
    const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight, int64_t reduction,
    int64_t ignore_index) {
  const bool weighted = given(weight);
  if (!serves<float_types>(self, weight) || !serves<one(at::kLong)>(target) || target.device() != self.device() ||
      self.dim() < 1 || target.dim() != self.dim() - 1 || !is_reduction(reduction) ||
      ignore_index < std::numeric_limits<int>::min() || ignore_index > std::numeric_limits<int>::max()) {
    return false;
  }
  for (int64_t i = 0; i < target.dim(); ++i) {
    if (target.size(i) != self.size(i == 0 ? 0 : i + 1)) {
      return false;
    }
  }
  return !weighted ||
      (weight->scalar_type() == self.scalar_type() && weight->dim() == 1 &&
       weight->size(0) == self.size(self.dim() == 1 ? 0 : 1));
}

bool nll_gradients_served(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target, int64_t reduction,
    const at::Tensor& total_weight) {
  const bool each = reduction == at::Reduction::None && self.dim() > 1;
  return serves<float_types>(grad_output, self, total_weight) && grad_output.scalar_type() == self.scalar_type() &&
      total_weight.scalar_type() == self.scalar_type() && total_weight.numel() == 1 &&
      (each ? grad_output.sizes() == target.sizes() : grad_output.numel() == 1 && grad_output.dim() <= 1);
}

void nll_loss_forward(
    const at::Tensor& self, const at::Tensor& target, at::OptionalTensorRef weight, int64_t reduction,
    int64_t ignore_index, const at::Tensor& out, const at::Tensor& total_weight) {
  run_nll(self, target, weight.has_value() ? &*weight : nullptr, reduction, ignore_index, out, total_weight);
}

bool nll_loss_forward_served(
    const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight, int64_t reduction,
    int64_t ignore_index) {
  return self.dim() <= 2 && nll_operands_served(self, target, weight, reduction, ignore_index);
}

void nll_loss_backward(
    const at::Tensor& grad_output, const at::Tensor& /*self*/, const at::Tensor& target, at::OptionalTensorRef weight,
    int64_t reduction, int64_t ignore_index, const at::Tensor& total_weight, const at::Tensor& out) {
  run_nll_backward(
      grad_output, target, weight.has_value() ? &*weight : nullptr, reduction, ignore_index, total_weight, out);
}

bool nll_loss_backward_served(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target,
    const std::optional<at::Tensor>& weight, int64_t reduction, int64_t ignore_index, const at::Tensor& total_weight) {
  return nll_loss_forward_served(self, target, weight, reduction, ignore_index) &&
      nll_gradients_served(grad_output, self, target, reduction, total_weight);
}

// ---- NLL loss with labels for 2-d positions

const at::Tensor* pointer_to(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() ? &*tensor : nullptr;
}

bool nll_loss2d_forward_served(
    const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight, int64_t reduction,
    int64_t ignore_index) {
  return self.dim() == 4 && !must_repeat() && nll_operands_served(self, target, weight, reduction, ignore_index);
}

std::tuple<at::Tensor, at::Tensor> nll_loss2d_forward(
    const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight, int64_t reduction,
    int64_t ignore_index) {
  const bool each = reduction == at::Reduction::None;
  at::Tensor out = new_empty(self, each ? target.sizes() : at::IntArrayRef());
  at::Tensor total_weight = new_empty(self, {});
  run_nll(self, target, pointer_to(weight), reduction, ignore_index, out, total_weight);
  return {std::move(out), std::move(total_weight)};
}

std::tuple<at::Tensor&, at::Tensor&> nll_loss2d_forward_out(
    const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight, int64_t reduction,
    int64_t ignore_index, at::Tensor& out, at::Tensor& total_weight) {
  const bool each = reduction == at::Reduction::None;
  at::native::resize_output(out, each ? target.sizes() : at::IntArrayRef());
  at::native::resize_output(total_weight, {});
  run_nll(self, target, pointer_to(weight), reduction, ignore_index, out, total_weight);
  return {out, total_weight};
}

bool nll_loss2d_forward_out_served(
    const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight, int64_t reduction,
    int64_t ignore_index, at::Tensor& out, at::Tensor& total_weight) {
  return nll_loss2d_forward_served(self, target, weight, reduction, ignore_index) && takes_out(out, self) &&
      takes_out(total_weight, self);
}

bool nll_loss2d_backward_served(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target,
    const std::optional<at::Tensor>& weight, int64_t reduction, int64_t ignore_index, const at::Tensor& total_weight) {
  return self.dim() == 4 && nll_operands_served(self, target, weight, reduction, ignore_index) &&
      nll_gradients_served(grad_output, self, target, reduction, total_weight);
}

at::Tensor nll_loss2d_backward(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target,
    const std::optional<at::Tensor>& weight, int64_t reduction, int64_t ignore_index, const at::Tensor& total_weight) {
  at::Tensor out = new_empty(self, self.sizes());
  run_nll_backward(grad_output, target, pointer_to(weight), reduction, ignore_index, total_weight, out);
  return out;
}

at::Tensor& nll_loss2d_backward_out(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target,
    const std::optional<at::Tensor>& weight, int64_t reduction, int64_t ignore_index, const at::Tensor& total_weight,
    at::Tensor& out) {
  at::native::resize_output(out, self.sizes());
  run_nll_backward(grad_output, target, pointer_to(weight), reduction, ignore_index, total_weight, out);
  return out;
}

bool nll_loss2d_backward_out_served(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target,
    const std::optional<at::Tensor>& weight, int64_t reduction, int64_t ignore_index, const at::Tensor& total_weight,
    at::Tensor& out) {
  return nll_loss2d_backward_served(grad_output, self, target, weight, reduction, ignore_index, total_weight) &&
      takes_out(out, self);
}

// ---- CTC loss: scores have shape [time, batch, class]; targets are rows or concatenated

inline constexpr Dtypes ctc_types = one(at::kFloat) | one(at::kDouble);
inline constexpr Dtypes label_types = one(at::kLong) | one(at::kInt);

// If the lengths are on the device, longest_target is an upper bound.
struct Lengths {
  at::Tensor input;
  at::Tensor target;
  int64_t longest_target;
};

// Copies from pinned memory, so the host does not wait.
at::Tensor on_device(at::IntArrayRef lengths, at::Device device) {
  const auto size = static_cast<int64_t>(lengths.size());
  const at::Tensor host = at::empty({size}, at::TensorOptions().dtype(at::kLong).pinned_memory(true));
  std::copy(lengths.begin(), lengths.end(), host.mutable_data_ptr<int64_t>());
  return host.to(device, /*non_blocking=*/true);
}

at::IntArrayRef values(const at::Tensor& lengths) {
  return {lengths.const_data_ptr<int64_t>(), static_cast<size_t>(lengths.numel())};
}

Lengths lengths_of(const at::Tensor& log_probs, at::IntArrayRef input, at::IntArrayRef target) {
  return {
      on_device(input, log_probs.device()), on_device(target, log_probs.device()),
      *std::max_element(target.begin(), target.end())};
}

Lengths lengths_of(
    const at::Tensor& log_probs, const at::Tensor& targets, const at::Tensor& input, const at::Tensor& target) {
  return input.is_cpu()
      ? lengths_of(log_probs, values(input), values(target))
      : Lengths{*contiguous(in_dtype(input, at::kLong)), *contiguous(in_dtype(target, at::kLong)), targets.size(1)};
}

dnn::CTCLoss ctc_operation(const Lengths& lengths, int64_t blank, bool zero_infinity) {
  dnn::CTCLoss op;
  check(op.SetBlank(blank), "CTCLoss::SetBlank");
  check(op.SetZeroInfinity(zero_infinity), "CTCLoss::SetZeroInfinity");
  check(op.SetMaxTargetLength(lengths.longest_target), "CTCLoss::SetMaxTargetLength");
  return op;
}

std::tuple<at::Tensor, at::Tensor> run_ctc(
    const at::Tensor& log_probs, const at::Tensor& targets, const Lengths& lengths, int64_t blank, bool zero_infinity) {
  const dnn::CTCLoss op = ctc_operation(lengths, blank, zero_infinity);
  const Operand in = contiguous(log_probs);
  const Operand labels = contiguous(targets);
  at::Tensor loss = at::empty({in->size(1)}, in->options());
  at::Tensor log_alpha = at::empty({in->size(1), in->size(0), 2 * lengths.longest_target + 1}, in->options());
  const OnDevice on(loss);
  dnn::Tensor result = describe(loss);
  dnn::Tensor alpha = describe(log_alpha);
  check(
      op.Run(on.handle(), result, alpha, operand(in), operand(labels), operand(lengths.input), operand(lengths.target)),
      "CTCLoss::Run", {&loss, &log_alpha, &*in, &*labels});
  return {std::move(loss), std::move(log_alpha)};
}

at::Tensor run_ctc_backward(
    const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets, const Lengths& lengths,
    const at::Tensor& loss, const at::Tensor& log_alpha, int64_t blank, bool zero_infinity) {
  const dnn::CTCLoss op = ctc_operation(lengths, blank, zero_infinity);
  const Operand in = contiguous(log_probs);
  const Operand labels = contiguous(targets);
  const Operand gradient = contiguous(grad);
  const Operand losses = contiguous(loss);
  const Operand alphas = contiguous(log_alpha);
  at::Tensor out = at::empty(in->sizes(), in->options());
  const OnDevice on(out);
  dnn::Tensor result = describe(out);
  check(
      op.RunBwd(
          on.handle(), result, operand(gradient), operand(in), operand(labels), operand(lengths.input),
          operand(lengths.target), operand(losses), operand(alphas), on.workspace()),
      "CTCLoss::RunBwd", {&out, &*gradient, &*in, &*labels, &*losses, &*alphas});
  return out;
}

bool ctc_operands_served(const at::Tensor& log_probs, const at::Tensor& targets, int64_t blank) {
  return serves<ctc_types>(log_probs) && serves<label_types>(targets) && targets.device() == log_probs.device() &&
      log_probs.dim() == 3 && blank >= 0 && blank < log_probs.size(2) &&
      (targets.dim() == 1 || (targets.dim() == 2 && targets.size(0) == log_probs.size(1)));
}

bool ctc_gradients_served(
    const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& loss, const at::Tensor& log_alpha,
    int64_t longest_target) {
  const at::ScalarType dtype = log_probs.scalar_type();
  const int64_t batch = log_probs.size(1);
  return !must_repeat() && serves<ctc_types>(log_probs, grad, loss, log_alpha) && grad.scalar_type() == dtype &&
      loss.scalar_type() == dtype && log_alpha.scalar_type() == dtype && grad.dim() == 1 && grad.size(0) == batch &&
      loss.dim() == 1 && loss.size(0) == batch && log_alpha.dim() == 3 && log_alpha.size(0) == batch &&
      log_alpha.size(1) == log_probs.size(0) && log_alpha.size(2) >= 2 * longest_target + 1;
}

bool ctc_loss_served(
    const at::Tensor& log_probs, const at::Tensor& targets, at::IntArrayRef input_lengths,
    at::IntArrayRef target_lengths, int64_t blank, bool /*zero_infinity*/) {
  if (!ctc_operands_served(log_probs, targets, blank)) {
    return false;
  }
  const auto batch = static_cast<size_t>(log_probs.size(1));
  const auto all_between = [batch](at::IntArrayRef lengths, int64_t low, int64_t high) {
    return lengths.size() == batch &&
        std::all_of(lengths.begin(), lengths.end(), [=](int64_t length) { return length >= low && length <= high; });
  };
  return all_between(input_lengths, 1, log_probs.size(0)) && all_between(target_lengths, 0, targets.size(-1)) &&
      (targets.dim() == 2 ||
       std::accumulate(target_lengths.begin(), target_lengths.end(), int64_t{0}) == targets.size(0));
}

std::tuple<at::Tensor, at::Tensor> ctc_loss(
    const at::Tensor& log_probs, const at::Tensor& targets, at::IntArrayRef input_lengths,
    at::IntArrayRef target_lengths, int64_t blank, bool zero_infinity) {
  return run_ctc(log_probs, targets, lengths_of(log_probs, input_lengths, target_lengths), blank, zero_infinity);
}

bool ctc_loss_backward_served(
    const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets, at::IntArrayRef input_lengths,
    at::IntArrayRef target_lengths, const at::Tensor& loss, const at::Tensor& log_alpha, int64_t blank,
    bool zero_infinity) {
  return ctc_loss_served(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity) &&
      ctc_gradients_served(
             grad, log_probs, loss, log_alpha, *std::max_element(target_lengths.begin(), target_lengths.end()));
}

at::Tensor ctc_loss_backward(
    const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets, at::IntArrayRef input_lengths,
    at::IntArrayRef target_lengths, const at::Tensor& loss, const at::Tensor& log_alpha, int64_t blank,
    bool zero_infinity) {
  const Lengths lengths = lengths_of(log_probs, input_lengths, target_lengths);
  return run_ctc_backward(grad, log_probs, targets, lengths, loss, log_alpha, blank, zero_infinity);
}

// Lengths on the host are read. Lengths on the device are not copied; each sample is assumed to use a whole row of
// targets.
bool ctc_loss_tensor_served(
    const at::Tensor& log_probs, const at::Tensor& targets, const at::Tensor& input_lengths,
    const at::Tensor& target_lengths, int64_t blank, bool zero_infinity) {
  const auto on_host = [](const at::Tensor& lengths) {
    return lengths.is_cpu() && lengths.scalar_type() == at::kLong && lengths.is_contiguous() && lengths.dim() == 1;
  };
  if (on_host(input_lengths) && on_host(target_lengths)) {
    return ctc_loss_served(log_probs, targets, values(input_lengths), values(target_lengths), blank, zero_infinity);
  }
  return ctc_operands_served(log_probs, targets, blank) && targets.dim() == 2 &&
      serves<label_types>(input_lengths, target_lengths) && input_lengths.device() == log_probs.device() &&
      input_lengths.dim() == 1 && target_lengths.dim() == 1 && input_lengths.size(0) == log_probs.size(1) &&
      target_lengths.size(0) == log_probs.size(1);
}

std::tuple<at::Tensor, at::Tensor> ctc_loss_tensor(
    const at::Tensor& log_probs, const at::Tensor& targets, const at::Tensor& input_lengths,
    const at::Tensor& target_lengths, int64_t blank, bool zero_infinity) {
  const Lengths lengths = lengths_of(log_probs, targets, input_lengths, target_lengths);
  return run_ctc(log_probs, targets, lengths, blank, zero_infinity);
}

bool ctc_loss_backward_tensor_served(
    const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets, const at::Tensor& input_lengths,
    const at::Tensor& target_lengths, const at::Tensor& loss, const at::Tensor& log_alpha, int64_t blank,
    bool zero_infinity) {
  if (!ctc_loss_tensor_served(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)) {
    return false;
  }
  const at::IntArrayRef on_host = target_lengths.is_cpu() ? values(target_lengths) : at::IntArrayRef();
  const int64_t longest = on_host.empty() ? targets.size(1) : *std::max_element(on_host.begin(), on_host.end());
  return ctc_gradients_served(grad, log_probs, loss, log_alpha, longest);
}

at::Tensor ctc_loss_backward_tensor(
    const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets, const at::Tensor& input_lengths,
    const at::Tensor& target_lengths, const at::Tensor& loss, const at::Tensor& log_alpha, int64_t blank,
    bool zero_infinity) {
  const Lengths lengths = lengths_of(log_probs, targets, input_lengths, target_lengths);
  return run_ctc_backward(grad, log_probs, targets, lengths, loss, log_alpha, blank, zero_infinity);
}

// ---- MSE loss

bool mse_loss_served(const at::Tensor& self, const at::Tensor& target, int64_t reduction) {
  return serves<float_types>(self, target) && self.scalar_type() == target.scalar_type() && is_reduction(reduction) &&
      at::are_expandable(self.sizes(), target.sizes());
}

at::Tensor squares(const at::Tensor& self, const at::Tensor& target) {
  at::Tensor result = self.sizes() == target.sizes()
      ? empty_as(self, self.scalar_type())
      : at::empty(at::infer_size(self.sizes(), target.sizes()), self.options());
  run_binary(BinaryMode::SQUARED_DIFF, result, self, target);
  return result;
}

// `terms` is dense, so it is described as one row.
void reduce_all(int64_t reduction, const at::Tensor& out, const at::Tensor& terms) {
  dnn::Reduce op;
  check(
      op.SetMode(reduction == at::Reduction::Mean ? dnn::Reduce::Mode::MEAN : dnn::Reduce::Mode::ADD),
      "Reduce::SetMode");
  check(op.SetDim({0}), "Reduce::SetDim");
  const OnDevice on(out);
  dnn::Tensor result = describe_as(out, {1}, {1});
  check(
      op.Run(on.handle(), result, describe_as(terms, {terms.numel()}, {1}, kRead), on.workspace()), "Reduce::Run",
      {&out, &terms});
}

at::Tensor mse_loss(const at::Tensor& self, const at::Tensor& target, int64_t reduction) {
  at::Tensor terms = squares(self, target);
  if (reduction == at::Reduction::None) {
    return terms;
  }
  at::Tensor out = new_empty(self, {});
  reduce_all(reduction, out, terms);
  return out;
}

at::Tensor& mse_loss_out(const at::Tensor& self, const at::Tensor& target, int64_t reduction, at::Tensor& out) {
  const at::Tensor terms = squares(self, target);
  if (reduction == at::Reduction::None) {
    at::native::resize_output(out, terms.sizes());
    at::assert_no_internal_overlap(out);
    convert(out, terms);
  } else {
    at::native::resize_output(out, {});
    reduce_all(reduction, out, terms);
  }
  return out;
}

bool mse_loss_out_served(const at::Tensor& self, const at::Tensor& target, int64_t reduction, at::Tensor& out) {
  return mse_loss_served(self, target, reduction) && takes_out(out, self);
}

bool mse_loss_backward_served(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target, int64_t reduction) {
  return serves<float_types>(grad_output, self, target) && self.scalar_type() == target.scalar_type() &&
      grad_output.scalar_type() == self.scalar_type() && is_reduction(reduction) && self.sizes() == target.sizes() &&
      at::is_expandable_to(grad_output.sizes(), self.sizes());
}

at::Tensor mse_loss_backward(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target, int64_t reduction) {
  at::Tensor out = empty_as(self, self.scalar_type());
  run_binary(BinaryMode::SUB, out, self, target);
  run_unary(UnaryMode::MUL, out, out, reduction == at::Reduction::Mean ? 2.0 / static_cast<double>(self.numel()) : 2.0);
  run_binary(BinaryMode::MUL, out, out, grad_output);
  return out;
}

at::Tensor& mse_loss_backward_out(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target, int64_t reduction,
    at::Tensor& out) {
  const at::Tensor result = musa_ops_mudnn::mse_loss_backward(grad_output, self, target, reduction);
  at::native::resize_output(out, result.sizes());
  at::assert_no_internal_overlap(out);
  convert(out, result);
  return out;
}

bool mse_loss_backward_out_served(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target, int64_t reduction,
    at::Tensor& out) {
  return mse_loss_backward_served(grad_output, self, target, reduction) && takes_out(out, self);
}

} // namespace

void declare_loss(OpPack& pack) {
  structured_pair<at::meta::structured_nll_loss_forward, nll_loss_forward, nll_loss_forward_served>(
      pack, {"aten::nll_loss_forward", "aten::nll_loss_forward.output"});
  structured<at::meta::structured_nll_loss_backward, nll_loss_backward, nll_loss_backward_served>(
      pack, {"aten::nll_loss_backward", "aten::nll_loss_backward.grad_input"});
  pack.impl("aten::nll_loss2d_forward", TORCH_FN(nll_loss2d_forward), TORCH_FN(nll_loss2d_forward_served));
  pack.impl(
      "aten::nll_loss2d_forward.output", TORCH_FN(nll_loss2d_forward_out), TORCH_FN(nll_loss2d_forward_out_served));
  pack.impl("aten::nll_loss2d_backward", TORCH_FN(nll_loss2d_backward), TORCH_FN(nll_loss2d_backward_served));
  pack.impl(
      "aten::nll_loss2d_backward.grad_input", TORCH_FN(nll_loss2d_backward_out),
      TORCH_FN(nll_loss2d_backward_out_served));

  pack.impl("aten::_ctc_loss", TORCH_FN(ctc_loss), TORCH_FN(ctc_loss_served));
  pack.impl("aten::_ctc_loss.Tensor", TORCH_FN(ctc_loss_tensor), TORCH_FN(ctc_loss_tensor_served));
  pack.impl("aten::_ctc_loss_backward", TORCH_FN(ctc_loss_backward), TORCH_FN(ctc_loss_backward_served));
  pack.impl(
      "aten::_ctc_loss_backward.Tensor", TORCH_FN(ctc_loss_backward_tensor), TORCH_FN(ctc_loss_backward_tensor_served));

  pack.impl("aten::mse_loss", TORCH_FN(mse_loss), TORCH_FN(mse_loss_served));
  pack.impl("aten::mse_loss.out", TORCH_FN(mse_loss_out), TORCH_FN(mse_loss_out_served));
  pack.impl("aten::mse_loss_backward", TORCH_FN(mse_loss_backward), TORCH_FN(mse_loss_backward_served));
  pack.impl(
      "aten::mse_loss_backward.grad_input", TORCH_FN(mse_loss_backward_out), TORCH_FN(mse_loss_backward_out_served));
}

} // namespace musa_ops_mudnn
