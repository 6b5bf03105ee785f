// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <host_kernels/capture/captured_call.h>
#include <host_kernels/host_scope.h>
#include <musa_runtime/op_pack.h>

// torch dispatches a renamed backend's convolutions only to these operators, which have no CPU kernel to fall back on. They
// run torch's CPU convolution on the host form of the operands, on any kind of device memory.

namespace musa_runtime {
namespace {

// Records torch's own operator, which has a meta kernel and a CPU kernel; the overrideable one has neither.
template <typename Return, typename... Args>
Return record(const char* name, Args... args) {
  const c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  return recording_kernel().call<Return, Args...>(
      op, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), std::forward<Args>(args)...);
}

at::Tensor convolution_overrideable(
    const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
    c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
    c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  if (C10_UNLIKELY(capturing())) {
    return record<
        at::Tensor, const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, c10::SymIntArrayRef,
        c10::SymIntArrayRef, c10::SymIntArrayRef, bool, c10::SymIntArrayRef, c10::SymInt>(
        "aten::convolution", input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
  }
  HostScope scope;
  const at::Tensor host_input = scope.host(input);
  const at::Tensor host_weight = scope.host(weight);
  const std::optional<at::Tensor> host_bias = scope.host(bias);
  scope.enter();
  return scope.device(
      at::convolution_symint(
          host_input, host_weight, host_bias, stride, padding, dilation, transposed, output_padding, groups));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward_overrideable(
    const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight, c10::SymIntArrayRef stride,
    c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed, c10::SymIntArrayRef output_padding,
    c10::SymInt groups, std::array<bool, 3> output_mask) {
  // The operator has no bias argument; the mask requests a bias gradient, which has one entry per output channel.
  const std::vector<c10::SymInt> bias_sizes{grad_output.sym_size(1)};
  if (C10_UNLIKELY(capturing())) {
    return record<
        std::tuple<at::Tensor, at::Tensor, at::Tensor>, const at::Tensor&, const at::Tensor&, const at::Tensor&,
        at::OptionalSymIntArrayRef, c10::SymIntArrayRef, c10::SymIntArrayRef, c10::SymIntArrayRef, bool,
        c10::SymIntArrayRef, c10::SymInt, std::array<bool, 3>>(
        "aten::convolution_backward", grad_output, input, weight,
        output_mask[2] ? at::OptionalSymIntArrayRef(bias_sizes) : std::nullopt, stride, padding, dilation, transposed,
        output_padding, groups, output_mask);
  }
  HostScope scope;
  const at::Tensor host_grad = scope.host(grad_output);
  const at::Tensor host_input = scope.host(input);
  const at::Tensor host_weight = scope.host(weight);
  scope.enter();
  return scope.device(
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
