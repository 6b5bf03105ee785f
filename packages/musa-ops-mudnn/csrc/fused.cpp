// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Fused operators torch_musa::* (support/own_ops.h): one call of muDNN instead of several of torch. The results of
// muDNN and of the compositions have the same strides.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>

#include "families.h"
#include "support/call.h"
#include "support/indices.h"
#include "support/own_ops.h"
#include "support/predicates.h"

namespace musa_ops_mudnn {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

// The dtype for intermediate results, which are rounded once at the end.
at::ScalarType wide(const Tensor& tensor) {
  return at::isReducedFloatingType(tensor.scalar_type()) ? at::kFloat : tensor.scalar_type();
}

// ---- swiglu(x): silu(first half) * second half, along the last dimension

at::DimVector half_sizes(const Tensor& input) {
  at::DimVector sizes(input.sizes());
  sizes.back() /= 2;
  return sizes;
}

bool splits_in_two(const Tensor& input) { return input.dim() > 0 && input.size(-1) % 2 == 0; }

Tensor half_of(const Tensor& tensor, int64_t which) {
  const int64_t size = tensor.size(-1) / 2;
  return tensor.narrow(-1, which * size, size);
}

void check_swiglu(const Tensor& input) {
  TORCH_CHECK(
      at::isFloatingType(input.scalar_type()) && splits_in_two(input),
      "swiglu takes a floating tensor whose last dimension splits in two, but got ", input.scalar_type(), input.sizes(),
      ".");
}

Tensor composed_swiglu(const Tensor& input) {
  check_swiglu(input);
  const Tensor both = input.to(wide(input));
  return (at::silu(half_of(both, 0)) * half_of(both, 1)).to(input.scalar_type()).contiguous();
}

Tensor composed_swiglu_backward(const Tensor& grad, const Tensor& input) {
  check_swiglu(input);
  TORCH_CHECK(
      grad.sizes() == half_sizes(input), "swiglu_backward: a gradient of shape ", grad.sizes(),
      " does not belong to an input of shape ", input.sizes(), ".");
  const Tensor both = input.to(wide(input));
  const Tensor outer = grad.to(wide(input));
  const Tensor first = at::silu_backward(outer * half_of(both, 1), half_of(both, 0));
  return at::cat({first, outer * at::silu(half_of(both, 0))}, -1).to(input.scalar_type()).contiguous();
}

Tensor swiglu(const Tensor& input) {
  const Tensor out = at::empty(half_sizes(input), input.options());
  const Operand source = contiguous(input);
  const OnDevice on(out);
  dnn::Tensor result = describe(out);
  check(dnn::SwiGlu().Run(on.handle(), result, operand(source)), "SwiGlu::Run", {&out, &*source});
  return out;
}

bool swiglu_served(const Tensor& input) { return serves<matrix_types>(input) && splits_in_two(input); }

Tensor swiglu_backward(const Tensor& grad, const Tensor& input) {
  const Tensor out = at::empty(input.sizes(), input.options());
  const Operand outer = contiguous(grad);
  const Operand source = contiguous(input);
  const OnDevice on(out);
  dnn::Tensor result = describe(out);
  check(
      dnn::SwiGlu().RunBwd(on.handle(), result, operand(source), operand(outer)), "SwiGlu::RunBwd",
      {&out, &*source, &*outer});
  return out;
}

bool swiglu_backward_served(const Tensor& grad, const Tensor& input) {
  return serves<matrix_types>(grad, input) && grad.scalar_type() == input.scalar_type() && splits_in_two(input) &&
      grad.sizes() == half_sizes(input);
}

// ---- rope(x, freqs): rotary position embedding (Su et al. 2021, RoFormer)
//
// x has shape (batch, positions, heads, elements), (positions, batch, heads, elements) without batch_first, or no batch
// dimension. freqs is either (S, R), the angle for each position and element, with any number of dimensions of size 1
// between; or (S, R / 2, 2), cosine and sine for each pair. Elements from R on are copied unchanged. The elements of a
// pair are half a dimension apart, or adjacent if interleaved. Multi-latent attention has adjacent pairs in its input,
// and pairs half a dimension apart in its result.

struct Rotation {
  bool interleaved;
  bool latent;
  int64_t positions; // dimension of the positions

  Rotation(const Tensor& input, bool interleaved, bool batch_first, bool latent)
      : interleaved(interleaved), latent(latent), positions(batch_first && input.dim() == 4 ? 1 : 0) {}
};

bool holds_pairs(const Tensor& freqs) { return freqs.dim() == 3 && freqs.size(2) == 2 && freqs.size(1) != 1; }

// Returns R, or 0 if freqs has neither form.
int64_t rotated(const Tensor& freqs) {
  if (holds_pairs(freqs)) {
    return freqs.size(1) * 2;
  }
  const bool table = freqs.dim() >= 2 &&
      std::all_of(freqs.sizes().begin() + 1, freqs.sizes().end() - 1, [](int64_t size) { return size == 1; });
  return table ? freqs.size(-1) : 0;
}

bool fits(const Tensor& input, const Tensor& freqs, const Rotation& rotation) {
  const int64_t size = rotated(freqs);
  return (input.dim() == 3 || input.dim() == 4) && size > 0 && size % 2 == 0 && size <= input.size(-1) &&
      freqs.size(0) >= input.size(rotation.positions);
}

Tensor every_second(const Tensor& tensor, int64_t first) { return tensor.slice(-1, first, std::nullopt, 2); }

Tensor interleave(const Tensor& first, const Tensor& second) { return at::stack({first, second}, -1).flatten(-2); }

// Maps each pair (a, b) to (-b, a).
Tensor quarter_turn(const Tensor& x, bool interleaved) {
  return interleaved ? interleave(-every_second(x, 1), every_second(x, 0))
                     : at::cat({-half_of(x, 1), half_of(x, 0)}, -1);
}

// Return the cosine and sine of each position and element, broadcastable to the input.
std::tuple<Tensor, Tensor> cosine_and_sine(
    const Tensor& input, const Tensor& freqs, const Rotation& rotation, at::ScalarType dtype) {
  const Tensor table = freqs.narrow(0, 0, input.size(rotation.positions)).to(dtype);
  at::DimVector shape(input.dim(), 1);
  shape[rotation.positions] = table.size(0);
  shape.back() = rotated(freqs);
  if (!holds_pairs(freqs)) {
    return {table.cos().reshape(shape), table.sin().reshape(shape)};
  }
  const auto shared = [&](int64_t which) {
    const Tensor value = table.select(2, which);
    return (rotation.interleaved ? interleave(value, value) : at::cat({value, value}, -1)).reshape(shape);
  };
  return {shared(0), shared(1)};
}

Tensor turn(const Tensor& input, const Tensor& freqs, const Rotation& rotation, bool forward) {
  TORCH_CHECK(
      at::isFloatingType(input.scalar_type()) && at::isFloatingType(freqs.scalar_type()) &&
          fits(input, freqs, rotation),
      "rope: frequencies ", freqs.scalar_type(), freqs.sizes(), " do not fit an input ", input.scalar_type(),
      input.sizes(), " with its positions in dimension ", rotation.positions,
      ". Pass angles (S, R) or pairs of cosine and sine (S, R / 2, 2), where S is at least the number of "
      "positions and R is even and at most the input's last dimension.");
  const at::ScalarType dtype = wide(input);
  const int64_t size = rotated(freqs);
  const auto [cosine, sine] = cosine_and_sine(input, freqs, rotation, dtype);
  Tensor x = input.narrow(-1, 0, size).to(dtype);
  Tensor y;
  if (forward) {
    if (rotation.latent) {
      x = at::cat({every_second(x, 0), every_second(x, 1)}, -1);
    }
    y = x * cosine + quarter_turn(x, rotation.interleaved) * sine;
  } else {
    y = x * cosine - quarter_turn(x * sine, rotation.interleaved);
    if (rotation.latent) {
      y = interleave(half_of(y, 0), half_of(y, 1));
    }
  }
  const Tensor rest = input.narrow(-1, size, input.size(-1) - size);
  return at::cat({y.to(input.scalar_type()), rest}, -1).contiguous();
}

Tensor composed_rope(const Tensor& input, const Tensor& freqs, bool interleaved, bool batch_first, bool latent) {
  return turn(input, freqs, Rotation(input, interleaved, batch_first, latent), /*forward=*/true);
}

Tensor composed_rope_backward(
    const Tensor& grad, const Tensor& freqs, bool interleaved, bool batch_first, bool latent) {
  return turn(grad, freqs, Rotation(grad, interleaved, batch_first, latent), /*forward=*/false);
}

dnn::Rope rope_of(bool interleaved, bool batch_first, bool latent) {
  dnn::Rope op;
  check(op.SetRotaryInterleaved(interleaved), "Rope::SetRotaryInterleaved");
  check(op.SetBatchFirst(batch_first), "Rope::SetBatchFirst");
  check(op.SetMultiLatentAttention(latent), "Rope::SetMultiLatentAttention");
  return op;
}

Tensor rope(const Tensor& input, const Tensor& freqs, bool interleaved, bool batch_first, bool latent) {
  const dnn::Rope op = rope_of(interleaved, batch_first, latent);
  const Tensor out = at::empty(input.sizes(), input.options());
  const Operand source = contiguous(input);
  const Operand table = contiguous(freqs);
  const OnDevice on(out);
  dnn::Tensor result = describe(out);
  check(op.Run(on.handle(), result, operand(source), operand(table)), "Rope::Run", {&out, &*source, &*table});
  return out;
}

bool rope_served(const Tensor& input, const Tensor& freqs, bool interleaved, bool batch_first, bool latent) {
  return serves<matrix_types>(input, freqs) &&
      (freqs.scalar_type() == at::kFloat || freqs.scalar_type() == input.scalar_type()) &&
      fits(input, freqs, Rotation(input, interleaved, batch_first, latent));
}

Tensor rope_backward(const Tensor& grad, const Tensor& freqs, bool interleaved, bool batch_first, bool latent) {
  const dnn::Rope op = rope_of(interleaved, batch_first, latent);
  const Tensor out = at::empty(grad.sizes(), grad.options());
  const Operand outer = contiguous(grad);
  const Operand table = contiguous(freqs);
  const OnDevice on(out);
  dnn::Tensor result = describe(out);
  check(op.RunBwd(on.handle(), result, operand(outer), operand(table)), "Rope::RunBwd", {&out, &*outer, &*table});
  return out;
}

// ---- conv2d_bias_act: activation(conv2d(input, weight, bias) + add)

using Activation = dnn::Convolution::FusedActivationDesc::Mode;

struct NamedActivation {
  std::string_view name;
  Activation mode;
  Tensor (*apply)(const Tensor&);
};

// The activations without coefficients: the meaning of muDNN's coefficients is not documented.
constexpr std::array activations = {
    NamedActivation{"none", Activation::IDENTITY, [](const Tensor& x) { return x; }},
    NamedActivation{"relu", Activation::RELU, &at::relu},
    NamedActivation{"sigmoid", Activation::SIGMOID, &at::sigmoid},
    NamedActivation{"tanh", Activation::TANH, &at::tanh},
    NamedActivation{"hardswish", Activation::HARD_SWISH, &at::hardswish},
    NamedActivation{"silu", Activation::SILU, &at::silu},
};

const NamedActivation* find_activation(std::string_view name) {
  const auto* const found = std::find_if(
      activations.begin(), activations.end(), [name](const NamedActivation& known) { return known.name == name; });
  return found == activations.end() ? nullptr : found;
}

// Returns false if the tensor is contiguous in both formats.
bool lies_channels_last(const Tensor& tensor) {
  return tensor.is_contiguous(at::MemoryFormat::ChannelsLast) && !tensor.is_contiguous();
}

at::MemoryFormat result_format(const Tensor& input, const Tensor& weight) {
  return lies_channels_last(input) || lies_channels_last(weight) ? at::MemoryFormat::ChannelsLast
                                                                 : at::MemoryFormat::Contiguous;
}

struct Window {
  at::IntArrayRef stride, padding, dilation;
  int64_t groups;

  // Returns the result's sizes, or nullopt if the operands do not match.
  std::optional<std::array<int64_t, 4>> sizes(const Tensor& input, const Tensor& weight) const {
    const auto two_of = [](at::IntArrayRef values, int64_t least) {
      return values.size() == 2 && std::all_of(values.begin(), values.end(), [least](int64_t value) {
               return value >= least && value <= std::numeric_limits<int>::max();
             });
    };
    if (input.dim() != 4 || weight.dim() != 4 || !two_of(stride, 1) || !two_of(padding, 0) || !two_of(dilation, 1) ||
        groups < 1 || weight.size(1) * groups != input.size(1) || weight.size(0) % groups != 0) {
      return std::nullopt;
    }
    std::array<int64_t, 4> result = {input.size(0), weight.size(0), 0, 0};
    for (int i = 0; i < 2; ++i) {
      const int64_t left = input.size(i + 2) + 2 * padding[i] - dilation[i] * (weight.size(i + 2) - 1) - 1;
      if (left < 0) {
        return std::nullopt;
      }
      result[i + 2] = left / stride[i] + 1;
    }
    return result;
  }
};

Tensor composed_conv2d_bias_act(
    const Tensor& input, const Tensor& weight, const OptionalTensor& bias, const OptionalTensor& add,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, int64_t groups,
    std::string_view activation) {
  const NamedActivation* const known = find_activation(activation);
  TORCH_CHECK_VALUE(
      known != nullptr,
      "conv2d_bias_act supports the activations none, relu, sigmoid, tanh, hardswish and silu, but got '", activation,
      "'.");
  TORCH_CHECK(input.dim() == 4, "conv2d_bias_act takes an input (N, C, H, W), but got the shape ", input.sizes(), ".");
  Tensor out = at::conv2d(input, weight, bias, stride, padding, dilation, groups);
  if (given(add)) {
    TORCH_CHECK(
        add->sizes() == out.sizes() && add->scalar_type() == out.scalar_type(),
        "conv2d_bias_act: add must have the result's dtype and shape, ", out.scalar_type(), out.sizes(), ", but is ",
        add->scalar_type(), add->sizes(), ".");
    out = out + *add;
  }
  return known->apply(out).contiguous(result_format(input, weight));
}

Tensor conv2d_bias_act(
    const Tensor& input, const Tensor& weight, const OptionalTensor& bias, const OptionalTensor& add,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, int64_t groups,
    std::string_view activation) {
  const auto two = [](at::IntArrayRef values) {
    return std::array<int, 2>{static_cast<int>(values[0]), static_cast<int>(values[1])};
  };
  const auto strides = two(stride);
  const auto paddings = two(padding);
  const auto dilations = two(dilation);
  dnn::Convolution op;
  check(op.SetNdInfo(2, paddings.data(), strides.data(), dilations.data()), "Convolution::SetNdInfo");
  check(op.SetGroups(static_cast<int>(groups)), "Convolution::SetGroups");
  check(op.SetComputeMode(compute_mode(input.scalar_type(), convolutions_may_round())), "Convolution::SetComputeMode");
  dnn::Convolution::FusedActivationDesc desc;
  check(desc.SetMode(find_activation(activation)->mode), "FusedActivationDesc::SetMode");

  const at::MemoryFormat format = result_format(input, weight);
  const auto sizes = *Window{stride, padding, dilation, groups}.sizes(input, weight);
  const Tensor out = at::empty(sizes, input.options().memory_format(format));
  const Operand image = contiguous(input, format);
  const Operand filter = contiguous(weight, format);
  const Operand offset = contiguous_or_none(bias);
  const Tensor addend = given(add) ? add->contiguous(format) : Tensor();

  const OnDevice on(out, convolutions_may_round());
  dnn::Tensor result = describe_channels(out, format);
  const dnn::Tensor image_ = describe_channels(image, format, kRead);
  const dnn::Tensor filter_ = describe_channels(filter, format, kRead);
  dnn::Convolution::Algorithm algorithm{};
  check(
      op.GetRecommendForwardAlgorithm(on.handle(), algorithm, result, image_, filter_),
      "Convolution::GetRecommendForwardAlgorithm", {&out, &*image, &*filter});
  check(
      op.RunFusion(
          on.handle(), result, image_, filter_, operand(offset),
          addend.defined() ? describe_channels(addend, format, kRead) : dnn::Tensor(), desc, algorithm, on.workspace()),
      "Convolution::RunFusion", {&out, &*image, &*filter, &*offset, &addend});
  return out;
}

bool conv2d_bias_act_served(
    const Tensor& input, const Tensor& weight, const OptionalTensor& bias, const OptionalTensor& add,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, int64_t groups,
    std::string_view activation) {
  if (!serves<matrix_types>(input, weight, bias, add) || input.scalar_type() != weight.scalar_type() ||
      groups > std::numeric_limits<int>::max() || find_activation(activation) == nullptr) {
    return false;
  }
  const auto sizes = Window{stride, padding, dilation, groups}.sizes(input, weight);
  return sizes.has_value() &&
      (!given(bias) ||
       (bias->dim() == 1 && bias->size(0) == weight.size(0) && bias->scalar_type() == input.scalar_type())) &&
      (!given(add) || (add->sizes() == at::IntArrayRef(*sizes) && add->scalar_type() == input.scalar_type()));
}

// ---- cross_entropy: torch.nn.functional.cross_entropy

int64_t class_dim(const Tensor& input) { return input.dim() == 1 ? 0 : 1; }

Tensor composed_cross_entropy(
    const Tensor& input, const Tensor& target, const OptionalTensor& weight, int64_t reduction, int64_t ignore_index,
    double smoothing) {
  return at::cross_entropy_loss(input, target, weight, reduction, ignore_index, smoothing).contiguous();
}

// Gradient with respect to the log-probabilities, for targets that are class indices.
Tensor gradient_of_indices(
    const Tensor& outer, const Tensor& log, const Tensor& target, const Tensor& weight, int64_t reduction,
    int64_t ignore_index, double smoothing, int64_t dim) {
  const Tensor ignored = target.eq(ignore_index);
  const Tensor label = target.masked_fill(ignored, 0); // replaced by a valid index
  const Tensor share =
      (weight.defined() ? weight.take(label) : at::ones_like(label, log.options())).masked_fill(ignored, 0);
  const Tensor scaled = reduction == at::Reduction::Mean ? outer / share.sum() : outer;
  Tensor result = at::zeros_like(log);
  if (smoothing > 0) {
    result += smoothing / static_cast<double>(log.size(dim));
    if (weight.defined()) {
      at::DimVector shape(log.dim(), 1);
      shape[dim] = weight.size(0);
      result *= weight.view(shape);
    }
    result *= scaled.dim() == target.dim() ? scaled.unsqueeze(dim) : scaled;
  }
  result.scatter_add_(dim, label.unsqueeze(dim), (share * scaled * (1 - smoothing)).unsqueeze(dim));
  return result.masked_fill_(ignored.unsqueeze(dim), 0).neg_();
}

Tensor gradient_of_probabilities(
    const Tensor& outer, const Tensor& log, const Tensor& target, const Tensor& weight, int64_t reduction,
    double smoothing, int64_t dim) {
  const auto classes = static_cast<double>(log.size(dim));
  Tensor result = target * (smoothing - 1);
  result -= smoothing / classes;
  if (weight.defined()) {
    at::DimVector shape(log.dim(), 1);
    shape[dim] = weight.size(0);
    result *= weight.view(shape);
  }
  if (reduction == at::Reduction::Mean) {
    result *= classes / static_cast<double>(log.numel());
  }
  return result * (outer.dim() == log.dim() - 1 ? outer.unsqueeze(dim) : outer);
}

Tensor composed_cross_entropy_backward(
    const Tensor& grad, const Tensor& input, const Tensor& target, const OptionalTensor& weight, int64_t reduction,
    int64_t ignore_index, double smoothing) {
  const at::ScalarType dtype = wide(input);
  const int64_t dim = class_dim(input);
  const Tensor log = at::_log_softmax(input.to(dtype), dim, /*half_to_float=*/false);
  const Tensor outer = grad.to(dtype);
  const Tensor weights = given(weight) ? weight->to(dtype) : Tensor();
  const Tensor by_log = at::isFloatingType(target.scalar_type())
      ? gradient_of_probabilities(outer, log, target.to(dtype), weights, reduction, smoothing, dim)
      : gradient_of_indices(outer, log, target, weights, reduction, ignore_index, smoothing, dim);
  return at::_log_softmax_backward_data(by_log, log, dim, dtype).to(input.scalar_type()).contiguous();
}

dnn::CrossEntropyLoss cross_entropy_of(int64_t reduction, int64_t ignore_index, double smoothing) {
  dnn::CrossEntropyLoss op;
  check(
      op.SetReductionMode(static_cast<dnn::CrossEntropyLoss::ReductionMode>(reduction)),
      "CrossEntropyLoss::SetReductionMode");
  check(op.SetIgnoreIndex(ignore_index), "CrossEntropyLoss::SetIgnoreIndex");
  check(op.SetLabelSmoothing(static_cast<float>(smoothing)), "CrossEntropyLoss::SetLabelSmoothing");
  return op;
}

Tensor cross_entropy(
    const Tensor& input, const Tensor& target, const OptionalTensor& weight, int64_t reduction, int64_t ignore_index,
    double smoothing) {
  const dnn::CrossEntropyLoss op = cross_entropy_of(reduction, ignore_index, smoothing);
  const Tensor out = at::empty(reduction == at::Reduction::None ? target.sizes() : at::IntArrayRef(), input.options());
  const Operand scores = contiguous(input);
  const Operand labels = contiguous(target);
  const Operand weights = contiguous_or_none(weight);
  require_labels(labels, ignore_index, input.size(1));
  const OnDevice on(out);
  dnn::Tensor result = describe(out);
  check(
      op.Run(on.handle(), result, operand(scores), operand(labels), operand(weights), on.workspace()),
      "CrossEntropyLoss::Run", {&out, &*scores, &*labels, &*weights});
  return out;
}

// Serves class indices as targets for rows of scores.
bool cross_entropy_served(
    const Tensor& input, const Tensor& target, const OptionalTensor& weight, int64_t reduction,
    int64_t /*ignore_index*/, double smoothing) {
  return serves<matrix_types | one(at::kLong)>(input, target, weight) && input.scalar_type() != at::kLong &&
      target.scalar_type() == at::kLong && input.dim() == 2 && target.dim() == 1 && target.size(0) == input.size(0) &&
      (!given(weight) ||
       (weight->scalar_type() == input.scalar_type() && weight->dim() == 1 && weight->size(0) == input.size(1))) &&
      reduction >= at::Reduction::None && reduction <= at::Reduction::Sum && smoothing >= 0 && smoothing <= 1;
}

Tensor cross_entropy_backward(
    const Tensor& grad, const Tensor& input, const Tensor& target, const OptionalTensor& weight, int64_t reduction,
    int64_t ignore_index, double smoothing) {
  const dnn::CrossEntropyLoss op = cross_entropy_of(reduction, ignore_index, smoothing);
  const Tensor out = at::empty(input.sizes(), input.options());
  const Operand outer = contiguous(grad);
  const Operand scores = contiguous(input);
  const Operand labels = contiguous(target);
  const Operand weights = contiguous_or_none(weight);
  const OnDevice on(out);
  dnn::Tensor result = describe(out);
  check(
      op.RunBwd(
          on.handle(), result, operand(scores), operand(outer), operand(labels), operand(weights), on.workspace()),
      "CrossEntropyLoss::RunBwd", {&out, &*scores, &*outer, &*labels, &*weights});
  return out;
}

bool cross_entropy_backward_served(
    const Tensor& grad, const Tensor& input, const Tensor& target, const OptionalTensor& weight, int64_t reduction,
    int64_t ignore_index, double smoothing) {
  return cross_entropy_served(input, target, weight, reduction, ignore_index, smoothing) &&
      serves<matrix_types>(grad, input) && grad.scalar_type() == input.scalar_type() &&
      grad.sizes() == (reduction == at::Reduction::None ? target.sizes() : at::IntArrayRef());
}

// ---- declaration

#define ROPE_OPTIONS "*, bool interleaved=False, bool batch_first=True, bool multi_latent=False"
#define LOSS_OPTIONS "*, int reduction=1, int ignore_index=-100, float label_smoothing=0.0"

} // namespace

void declare_fused(OpPack& pack) {
  define(
      pack, "swiglu", "(Tensor input) -> Tensor", TORCH_FN(swiglu), TORCH_FN(swiglu_served), TORCH_FN(composed_swiglu));
  define(
      pack, "swiglu_backward", "(Tensor grad, Tensor input) -> Tensor", TORCH_FN(swiglu_backward),
      TORCH_FN(swiglu_backward_served), TORCH_FN(composed_swiglu_backward));
  define(
      pack, "rope", "(Tensor input, Tensor freqs, " ROPE_OPTIONS ") -> Tensor", TORCH_FN(rope), TORCH_FN(rope_served),
      TORCH_FN(composed_rope));
  define(
      pack, "rope_backward", "(Tensor grad, Tensor freqs, " ROPE_OPTIONS ") -> Tensor", TORCH_FN(rope_backward),
      TORCH_FN(rope_served), TORCH_FN(composed_rope_backward));
  define(
      pack, "conv2d_bias_act",
      "(Tensor input, Tensor weight, Tensor? bias=None, Tensor? add=None, *, int[2] stride=1, int[2] padding=0, "
      "int[2] dilation=1, int groups=1, str activation=\"none\") -> Tensor",
      TORCH_FN(conv2d_bias_act), TORCH_FN(conv2d_bias_act_served), TORCH_FN(composed_conv2d_bias_act));
  define(
      pack, "cross_entropy", "(Tensor input, Tensor target, Tensor? weight=None, " LOSS_OPTIONS ") -> Tensor",
      TORCH_FN(cross_entropy), TORCH_FN(cross_entropy_served), TORCH_FN(composed_cross_entropy));
  define(
      pack, "cross_entropy_backward",
      "(Tensor grad, Tensor input, Tensor target, Tensor? weight=None, " LOSS_OPTIONS ") -> Tensor",
      TORCH_FN(cross_entropy_backward), TORCH_FN(cross_entropy_backward_served),
      TORCH_FN(composed_cross_entropy_backward));
  declare_fused_autocast();
}

} // namespace musa_ops_mudnn
