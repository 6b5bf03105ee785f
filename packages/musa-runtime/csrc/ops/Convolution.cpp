// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <musa_runtime/graph_capture.h>
#include <musa_runtime/host/host_forms.h>
#include <musa_runtime/op_pack.h>

// torch dispatches a renamed backend's convolutions only to these operators, which have no CPU kernel to fall back on. They
// copy the operands to the host and run torch's CPU convolution, as "host-copy" does for other operators.

namespace musa_runtime {
namespace {

void refuse_in_capture(const char* op) {
  if (C10_UNLIKELY(capturing())) {
    refuse_to_capture(op, "no pack serves it, so that it is computed on the host with copies to and from the device");
  }
}

at::Tensor convolution_overrideable(
    const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
    c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
    c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  refuse_in_capture("aten::convolution");
  HostCopies forms;
  const at::Tensor host_input = forms.host(input);
  const at::Tensor host_weight = forms.host(weight);
  const std::optional<at::Tensor> host_bias = forms.host(bias);
  forms.enter();
  return forms.device(
      at::convolution_symint(
          host_input, host_weight, host_bias, stride, padding, dilation, transposed, output_padding, groups));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward_overrideable(
    const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight, c10::SymIntArrayRef stride,
    c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed, c10::SymIntArrayRef output_padding,
    c10::SymInt groups, std::array<bool, 3> output_mask) {
  // The operator has no bias argument; the mask requests a bias gradient, which has one entry per output channel.
  const std::vector<c10::SymInt> bias_sizes{grad_output.sym_size(1)};
  refuse_in_capture("aten::convolution_backward");
  HostCopies forms;
  const at::Tensor host_grad = forms.host(grad_output);
  const at::Tensor host_input = forms.host(input);
  const at::Tensor host_weight = forms.host(weight);
  forms.enter();
  return forms.device(
      at::convolution_backward_symint(
          host_grad, host_input, host_weight, output_mask[2] ? at::OptionalSymIntArrayRef(bias_sizes) : std::nullopt,
          stride, padding, dilation, transposed, output_padding, groups, output_mask));
}

MUSA_OP_PACK(runtime, pack) {
  pack.impl("aten::convolution_overrideable", TORCH_FN(convolution_overrideable))
      .impl("aten::convolution_backward_overrideable", TORCH_FN(convolution_backward_overrideable));
}

} // namespace
} // namespace musa_runtime
