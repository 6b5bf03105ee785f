// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <musa_runtime/host/host_forms.h>

#include <array>
#include <optional>
#include <tuple>

// torch's CPU convolution on the host forms of the operands. torch dispatches a renamed backend's convolutions only to
// aten::convolution_overrideable and its gradient, which have no CPU kernel; the parameters are theirs.

namespace musa_ops_host {

inline at::Tensor convolution_on_host(
    musa_runtime::HostForms& forms, const at::Tensor& input, const at::Tensor& weight,
    const std::optional<at::Tensor>& bias, c10::SymIntArrayRef stride, c10::SymIntArrayRef padding,
    c10::SymIntArrayRef dilation, bool transposed, c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  const at::Tensor host_input = forms.host(input);
  const at::Tensor host_weight = forms.host(weight);
  const std::optional<at::Tensor> host_bias = forms.host(bias);
  forms.enter();
  return forms.device(
      at::convolution_symint(
          host_input, host_weight, host_bias, stride, padding, dilation, transposed, output_padding, groups));
}

// The operator has no bias argument; the mask requests a bias gradient, which has one entry per output channel.
inline std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward_on_host(
    musa_runtime::HostForms& forms, const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
    c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
    c10::SymIntArrayRef output_padding, c10::SymInt groups, std::array<bool, 3> output_mask) {
  const c10::SymInt channels = grad_output.sym_size(1);
  const at::Tensor host_grad = forms.host(grad_output);
  const at::Tensor host_input = forms.host(input);
  const at::Tensor host_weight = forms.host(weight);
  forms.enter();
  return forms.device(
      at::convolution_backward_symint(
          host_grad, host_input, host_weight,
          output_mask[2] ? at::OptionalSymIntArrayRef(c10::SymIntArrayRef(&channels, 1)) : std::nullopt, stride,
          padding, dilation, transposed, output_padding, groups, output_mask));
}

} // namespace musa_ops_host
