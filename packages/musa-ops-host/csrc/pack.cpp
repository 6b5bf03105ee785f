// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "capture/captured_call.h"
#include "convolution.h"
#include "fallback.h"
#include "in_place/host_scope.h"
#include "recurrent.h"

#include <ATen/core/stack.h>
#include <musa_runtime/graph_capture.h>
#include <musa_runtime/op_pack.h>

// The kernels that are not generated: of operators without a CPU kernel of the same name.

namespace musa_ops_host {
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
  if (C10_UNLIKELY(musa_runtime::capturing())) {
    return record<
        at::Tensor, const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, c10::SymIntArrayRef,
        c10::SymIntArrayRef, c10::SymIntArrayRef, bool, c10::SymIntArrayRef, c10::SymInt>(
        "aten::convolution", input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
  }
  HostScope scope;
  scope.set_name("aten::convolution");
  return convolution_on_host(scope, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward_overrideable(
    const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight, c10::SymIntArrayRef stride,
    c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed, c10::SymIntArrayRef output_padding,
    c10::SymInt groups, std::array<bool, 3> output_mask) {
  if (C10_UNLIKELY(musa_runtime::capturing())) {
    const std::vector<c10::SymInt> bias_sizes{grad_output.sym_size(1)};
    return record<
        std::tuple<at::Tensor, at::Tensor, at::Tensor>, const at::Tensor&, const at::Tensor&, const at::Tensor&,
        at::OptionalSymIntArrayRef, c10::SymIntArrayRef, c10::SymIntArrayRef, c10::SymIntArrayRef, bool,
        c10::SymIntArrayRef, c10::SymInt, std::array<bool, 3>>(
        "aten::convolution_backward", grad_output, input, weight,
        output_mask[2] ? at::OptionalSymIntArrayRef(bias_sizes) : std::nullopt, stride, padding, dilation, transposed,
        output_padding, groups, output_mask);
  }
  HostScope scope;
  scope.set_name("aten::convolution_backward");
  return convolution_backward_on_host(
      scope, grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, output_mask);
}

void copy_on_device(const at::Tensor& self, const at::Tensor& src) {
  if (C10_UNLIKELY(musa_runtime::capturing())) {
    static const c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", "");
    torch::jit::Stack stack{self, src, false};
    record_call(op, &stack);
    return;
  }
  HostScope scope;
  scope.set_name("aten::copy_");
  const at::Tensor host_self = scope.host_written(self);
  const at::Tensor host_src = scope.host(src);
  scope.enter();
  host_self.copy_(host_src);
}

MUSA_OP_PACK(host, pack) {
  musa_runtime::set_host_fallback(&call_boxed);
  pack.needs_host_addressable()
      .impl("aten::convolution_overrideable", TORCH_FN(convolution_overrideable))
      .impl("aten::convolution_backward_overrideable", TORCH_FN(convolution_backward_overrideable))
      .impl("torch_musa::_copy_on_device", TORCH_FN(copy_on_device))
      .impl("torch_musa::_recurrent_layer", TORCH_FN(recurrent_layer), TORCH_FN(recurrent_layer_is_served))
      .impl(
          "torch_musa::_recurrent_layer_backward", TORCH_FN(recurrent_layer_backward),
          TORCH_FN(recurrent_layer_backward_is_served));
}

} // namespace
} // namespace musa_ops_host
