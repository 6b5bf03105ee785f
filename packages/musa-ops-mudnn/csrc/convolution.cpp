// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// 2-d and 3-d convolutions, transposed convolutions, and their gradients. torch converts 1-d convolutions to 2-d, and
// adds the batch dimension to single images.
#include <ATen/DimVector.h>
#include <ATen/ops/empty.h>
#include <c10/core/SymIntArrayRef.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <tuple>

#include "families.h"
#include "support/call.h"
#include "support/elementwise.h"
#include "support/predicates.h"

namespace musa_ops_mudnn {
namespace {

using Conv = dnn::Convolution;
using Lists = std::array<c10::SymIntArrayRef, 4>; // stride, padding, dilation, output padding

// Parameters of the sliding window, and the output shape.
struct Windows {
  std::array<int, 3> pad{}, stride{}, dilation{};
  int space = 0; // number of spatial dimensions
  int groups = 1;
  bool transposed = false;
  at::DimVector out;
};

std::optional<int> small(int64_t value, int64_t least) {
  return value >= least && value <= std::numeric_limits<int>::max() ? std::optional(static_cast<int>(value))
                                                                    : std::nullopt;
}

// Returns nullopt if the arguments are inconsistent or muDNN does not support them; the next provider raises the error.
std::optional<Windows> windows_of(
    const at::Tensor& input, const at::Tensor& weight, const Lists& lists, bool transposed, const c10::SymInt& groups) {
  const int64_t dims = input.dim();
  const auto group_count = groups.maybe_as_int();
  if ((dims != 4 && dims != 5) || weight.dim() != dims || !group_count || !small(*group_count, 1)) {
    return std::nullopt;
  }
  Windows windows;
  windows.space = static_cast<int>(dims) - 2;
  windows.groups = static_cast<int>(*group_count);
  windows.transposed = transposed;
  // A transposed convolution is the input gradient of a convolution, so its input has the shape of that convolution's
  // output.
  const int64_t left = weight.size(0);
  const int64_t right = weight.size(1) * windows.groups;
  if (left % windows.groups != 0 || input.size(1) != (transposed ? left : right)) {
    return std::nullopt;
  }
  std::array<at::IntArrayRef, 4> values;
  for (size_t i = 0; i < lists.size(); ++i) {
    const auto list = c10::asIntArrayRefSlowOpt(lists[i]);
    if (!list || static_cast<int>(list->size()) != windows.space) {
      return std::nullopt;
    }
    values[i] = *list;
  }
  windows.out = {input.size(0), transposed ? right : left};
  for (int i = 0; i < windows.space; ++i) {
    const auto stride = small(values[0][i], 1);
    const auto pad = small(values[1][i], 0);
    const auto dilation = small(values[2][i], 1);
    const int64_t extra = values[3][i];
    if (!stride || !pad || !dilation) {
      return std::nullopt;
    }
    windows.stride[i] = *stride;
    windows.pad[i] = *pad;
    windows.dilation[i] = *dilation;
    const int64_t size = input.size(i + 2);
    const int64_t reach = *dilation * (weight.size(i + 2) - 1) + 1; // extent of the window
    if (transposed) {
      const int64_t wanted = (size - 1) * *stride - 2 * *pad + reach + extra;
      // With an output padding of at least the stride, no convolution of that result gives this input.
      if (extra < 0 || extra >= *stride || wanted < 1) {
        return std::nullopt;
      }
      windows.out.push_back(wanted);
    } else {
      const int64_t room = size + 2 * *pad - reach;
      if (extra != 0 || room < 0) {
        return std::nullopt;
      }
      windows.out.push_back(room / *stride + 1);
    }
  }
  return windows;
}

// `dtype` is the dtype of the factors. 16-bit values that were converted to FLOAT are exact in TF32 too.
Conv describe_operation(const Windows& windows, at::ScalarType dtype) {
  Conv op;
  check(
      op.SetNdInfo(windows.space, windows.pad.data(), windows.stride.data(), windows.dilation.data()),
      "Convolution::SetNdInfo");
  check(op.SetGroups(windows.groups), "Convolution::SetGroups");
  check(op.SetComputeMode(compute_mode(dtype, convolutions_may_round())), "Convolution::SetComputeMode");
  return op;
}

// Channels last if either operand is channels last.
at::MemoryFormat common_format(const at::Tensor& input, const at::Tensor& weight) {
  const at::MemoryFormat format = channels_format(input);
  return format == at::MemoryFormat::Contiguous ? channels_format(weight) : format;
}

at::Tensor empty_image(at::IntArrayRef sizes, const at::Tensor& like, at::MemoryFormat format) {
  return at::empty(sizes, like.options().memory_format(format));
}

// ---- forward pass and gradients. Operands are dense in `format`.

void add_bias(const at::Tensor& out, const at::Tensor& bias) {
  at::DimVector shape(out.dim(), 1);
  shape[1] = bias.size(0);
  run_binary(BinaryMode::ADD, out, out, bias.reshape(shape));
}

// muDNN before 3.1 does not support a bias in 3-d convolutions.
bool fuses_bias(const Windows& windows) { return windows.space == 2 || dnn::GetVersion() >= 3100; }

void run_forward(
    const Windows& windows, const at::Tensor& out, const at::Tensor& in, const at::Tensor& weight,
    const at::Tensor& bias, at::MemoryFormat format) {
  const Conv op = describe_operation(windows, in.scalar_type());
  const OnDevice on(out, convolutions_may_round());
  dnn::Tensor result = describe_channels(out, format);
  const dnn::Tensor image = describe_channels(in, format, kRead);
  const dnn::Tensor filter = describe_channels(weight, format, kRead);
  auto algorithm = Conv::Algorithm::IMPLICIT_GEMM;
  check(
      op.GetRecommendForwardAlgorithm(on.handle(), algorithm, result, image, filter),
      "Convolution::GetRecommendForwardAlgorithm", {&out, &in, &weight});
  if (bias.defined() && fuses_bias(windows)) {
    const Conv::FusedActivationDesc none;
    check(
        op.RunFusion(on.handle(), result, image, filter, operand(bias), dnn::Tensor(), none, algorithm, on.workspace()),
        "Convolution::RunFusion", {&out, &in, &weight, &bias});
    return;
  }
  check(
      op.Run(on.handle(), result, image, filter, algorithm, on.workspace()), "Convolution::Run", {&out, &in, &weight});
  if (bias.defined()) {
    add_bias(out, bias);
  }
}

void run_backward_data(
    const Windows& windows, const at::Tensor& grad_in, const at::Tensor& grad_out, const at::Tensor& weight,
    at::MemoryFormat format, at::ScalarType dtype) {
  const Conv op = describe_operation(windows, dtype);
  const OnDevice on(grad_in, convolutions_may_round());
  dnn::Tensor result = describe_channels(grad_in, format);
  const dnn::Tensor gradient = describe_channels(grad_out, format, kRead);
  at::Tensor weights = weight;
  dnn::Tensor filter;
  if (format == at::MemoryFormat::ChannelsLast3d) { // RunBwdData requires a DHWCN filter
    weights = weight.permute({2, 3, 4, 1, 0}).contiguous();
    filter = operand(weights);
    check(filter.SetFormat(dnn::Tensor::Format::DHWCN), "Tensor::SetFormat");
  } else {
    filter = describe_channels(weights, format, kRead);
  }
  auto algorithm = Conv::AlgorithmBwdData::IMPLICIT_GEMM;
  check(
      op.GetRecommendBackwardDataAlgorithm(on.handle(), algorithm, result, gradient, filter),
      "Convolution::GetRecommendBackwardDataAlgorithm", {&grad_in, &grad_out, &weight});
  check(
      op.RunBwdData(on.handle(), result, gradient, filter, algorithm, on.workspace()), "Convolution::RunBwdData",
      {&grad_in, &grad_out, &weight});
}

void run_backward_filter(
    const Windows& windows, const at::Tensor& grad_weight, const at::Tensor& in, const at::Tensor& grad_out,
    at::MemoryFormat format) {
  const Conv op = describe_operation(windows, in.scalar_type());
  const OnDevice on(grad_weight, convolutions_may_round());
  dnn::Tensor result = describe_channels(grad_weight, format);
  const dnn::Tensor image = describe_channels(in, format, kRead);
  const dnn::Tensor gradient = describe_channels(grad_out, format, kRead);
  auto algorithm = Conv::AlgorithmBwdFilter::IMPLICIT_GEMM;
  check(
      op.GetRecommendBackwardFilterAlgorithm(on.handle(), algorithm, result, image, gradient),
      "Convolution::GetRecommendBackwardFilterAlgorithm", {&grad_weight, &in, &grad_out});
  check(
      op.RunBwdFilter(on.handle(), result, image, gradient, algorithm, on.workspace()), "Convolution::RunBwdFilter",
      {&grad_weight, &in, &grad_out});
}

// ---- operators

at::Tensor convolution(
    const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
    c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
    c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  const auto windows = windows_of(input, weight, {stride, padding, dilation, output_padding}, transposed, groups);
  TORCH_INTERNAL_ASSERT(windows.has_value());
  const at::MemoryFormat format = common_format(input, weight);
  const Operand image = contiguous(input, format);
  const Operand filter = contiguous(weight, format);
  at::Tensor out = empty_image(windows->out, input, format);
  const Operand addend = contiguous_or_none(bias);
  if (!transposed) {
    run_forward(*windows, out, image, filter, addend, format);
    return out;
  }
  const at::ScalarType dtype = input.scalar_type();
  if (!addend->defined()) {
    run_backward_data(*windows, out, image, filter, format, dtype);
    return out;
  }
  // This direction has no call that adds the bias. Computed in FLOAT, so that 16-bit results are rounded once, after
  // the addition.
  write_as(at::kFloat, out, [&](const at::Tensor& result) {
    run_backward_data(*windows, result, in_dtype(image, at::kFloat), in_dtype(filter, at::kFloat), format, dtype);
    add_bias(result, in_dtype(addend, at::kFloat));
  });
  return out;
}

bool one_dtype(const at::Tensor& a, const at::Tensor& b) { return a.scalar_type() == b.scalar_type(); }

bool convolution_served(
    const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
    c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
    c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  if (!serves<matrix_types>(input, weight, bias) || !one_dtype(input, weight)) {
    return false;
  }
  const auto windows = windows_of(input, weight, {stride, padding, dilation, output_padding}, transposed, groups);
  return windows.has_value() &&
      (!bias.has_value() || !bias->defined() ||
       (bias->dim() == 1 && bias->size(0) == windows->out[1] && one_dtype(input, *bias)));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight, c10::SymIntArrayRef stride,
    c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed, c10::SymIntArrayRef output_padding,
    c10::SymInt groups, std::array<bool, 3> output_mask) {
  const auto windows = windows_of(input, weight, {stride, padding, dilation, output_padding}, transposed, groups);
  TORCH_INTERNAL_ASSERT(windows.has_value());
  const at::MemoryFormat format = common_format(input, weight);
  std::tuple<at::Tensor, at::Tensor, at::Tensor> grads;
  auto& [grad_input, grad_weight, grad_bias] = grads;
  const at::Tensor gradient = output_mask[0] || output_mask[1] ? grad_output.contiguous(format) : grad_output;
  if (output_mask[0]) {
    grad_input = empty_image(input.sizes(), input, format);
    const Operand filter = contiguous(weight, format);
    if (transposed) {
      run_forward(*windows, grad_input, gradient, filter, /*bias=*/at::Tensor(), format);
    } else {
      run_backward_data(*windows, grad_input, gradient, filter, format, gradient.scalar_type());
    }
  }
  if (output_mask[1]) {
    grad_weight = empty_image(weight.sizes(), weight, format);
    const Operand image = contiguous(input, format);
    if (transposed) {
      run_backward_filter(*windows, grad_weight, gradient, image, format);
    } else {
      run_backward_filter(*windows, grad_weight, image, gradient, format);
    }
  }
  if (output_mask[2]) {
    constexpr std::array<int64_t, 4> all_but_channels{0, 2, 3, 4};
    grad_bias = gradient.sum(at::IntArrayRef(all_but_channels.data(), static_cast<size_t>(gradient.dim()) - 1));
  }
  return grads;
}

bool convolution_backward_served(
    const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight, c10::SymIntArrayRef stride,
    c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed, c10::SymIntArrayRef output_padding,
    c10::SymInt groups, std::array<bool, 3> output_mask) {
  // The order in which muDNN sums a filter's gradient over images is not documented.
  if (!serves<matrix_types>(grad_output, input, weight) || !one_dtype(grad_output, input) ||
      !one_dtype(input, weight) || (output_mask[1] && must_repeat())) {
    return false;
  }
  const auto windows = windows_of(input, weight, {stride, padding, dilation, output_padding}, transposed, groups);
  return windows.has_value() && grad_output.sizes() == at::IntArrayRef(windows->out);
}

} // namespace

void declare_convolution(OpPack& pack) {
  pack.impl("aten::convolution_overrideable", TORCH_FN(convolution), TORCH_FN(convolution_served));
  pack.impl(
      "aten::convolution_backward_overrideable", TORCH_FN(convolution_backward), TORCH_FN(convolution_backward_served));
}

} // namespace musa_ops_mudnn
