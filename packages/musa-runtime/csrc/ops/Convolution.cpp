// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <musa_runtime/graph_capture.h>
#include <musa_runtime/host/convolution.h>
#include <musa_runtime/op_pack.h>

// Convolutions that no pack serves. They copy the operands to the host and run torch's CPU convolution, as "host-copy" does for other operators.

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
  return convolution_on_host(forms, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward_overrideable(
    const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight, c10::SymIntArrayRef stride,
    c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed, c10::SymIntArrayRef output_padding,
    c10::SymInt groups, std::array<bool, 3> output_mask) {
  refuse_in_capture("aten::convolution_backward");
  HostCopies forms;
  return convolution_backward_on_host(
      forms, grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, output_mask);
}

MUSA_OP_PACK(runtime, pack) {
  pack.impl("aten::convolution_overrideable", TORCH_FN(convolution_overrideable))
      .impl("aten::convolution_backward_overrideable", TORCH_FN(convolution_backward_overrideable));
}

} // namespace
} // namespace musa_runtime
