// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSACapabilities.h>
#include <host_copy/fallback.h>
#include <musa_runtime/float64.h>
#include <musa_runtime/graph_capture.h>
#include <musa_runtime/host/convolution.h>
#include <musa_runtime/op_pack.h>

// Convolutions that no pack serves. They copy the operands to the host and run torch's CPU convolution, as "host-copy" does for other operators.

namespace musa_runtime {
namespace {

bool lacks_float64(const at::Tensor& input) {
  return !c10::musa::computes_float64() && detail::need_float64(detail::numbers_of(input));
}

void refuse(const char* op, const at::Tensor& input) {
  if (C10_UNLIKELY(capturing())) {
    refuse_to_capture(op, "no pack serves it, so that it is computed on the host with copies to and from the device");
  }
  refuse_forbidden_copy(op, lacks_float64(input));
}

at::Tensor convolution_overrideable(
    const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
    c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
    c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  refuse("aten::convolution", input);
  HostCopies forms;
  at::Tensor result =
      convolution_on_host(forms, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
  report_copy("aten::convolution", forms.copied_bytes(), lacks_float64(input));
  return result;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward_overrideable(
    const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight, c10::SymIntArrayRef stride,
    c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed, c10::SymIntArrayRef output_padding,
    c10::SymInt groups, std::array<bool, 3> output_mask) {
  refuse("aten::convolution_backward", input);
  HostCopies forms;
  auto result = convolution_backward_on_host(
      forms, grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, output_mask);
  report_copy("aten::convolution_backward", forms.copied_bytes(), lacks_float64(input));
  return result;
}

MUSA_OP_PACK(runtime, pack) {
  pack.impl("aten::convolution_overrideable", TORCH_FN(convolution_overrideable))
      .impl("aten::convolution_backward_overrideable", TORCH_FN(convolution_backward_overrideable));
}

} // namespace
} // namespace musa_runtime
