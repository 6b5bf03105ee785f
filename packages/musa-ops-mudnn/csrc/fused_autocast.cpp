// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Autocast rules for the operators of fused.cpp: the dtype that the operators they replace would use. swiglu and rope
// have no rule and run in the dtype of their operands; the gradients use the dtype of the saved tensors.
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "families.h"
#include "support/own_ops.h"

namespace musa_ops_mudnn {
namespace {

using at::Tensor;
using at::autocast::CastPolicy;
using OptionalTensor = std::optional<Tensor>;

template <typename Signature>
auto find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

Tensor call_conv2d_bias_act(
    const Tensor& input, const Tensor& weight, const OptionalTensor& bias, const OptionalTensor& add,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, int64_t groups,
    std::string_view activation) {
  static const auto op = find<decltype(call_conv2d_bias_act)>("torch_musa::conv2d_bias_act");
  return op.call(input, weight, bias, add, stride, padding, dilation, groups, activation);
}

Tensor call_cross_entropy(
    const Tensor& input, const Tensor& target, const OptionalTensor& weight, int64_t reduction, int64_t ignore_index,
    double smoothing) {
  static const auto op = find<decltype(call_cross_entropy)>("torch_musa::cross_entropy");
  return op.call(input, target, weight, reduction, ignore_index, smoothing);
}

template <CastPolicy policy, typename Signature, Signature* function>
void rule(const char* name, c10::CompileTimeFunctionPointer<Signature, function> /*fn*/) {
  using Wrapped = at::autocast::WrapFunction<policy, c10::DeviceType::PrivateUse1, Signature, Signature, function>;
  own_library().impl(name, torch::dispatch(c10::DispatchKey::AutocastPrivateUse1, TORCH_FN(Wrapped::type::call)));
}

} // namespace

void declare_fused_autocast() {
  rule<CastPolicy::lower_precision_fp>("conv2d_bias_act", TORCH_FN(call_conv2d_bias_act));
  rule<CastPolicy::fp32>("cross_entropy", TORCH_FN(call_cross_entropy));
}

} // namespace musa_ops_mudnn
