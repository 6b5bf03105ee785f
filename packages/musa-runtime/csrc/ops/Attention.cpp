// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/ops/_fused_sdp_choice_cpu_dispatch.h>
#include <ATen/ops/_fused_sdp_choice_ops.h>
#include <musa_runtime/host_scope.h>
#include <musa_runtime/op_registry.h>

// scaled_dot_product_attention asks a stub, not an operator, which implementation a device wants, and a stub has room
// for one answer. Here it passes the question on to the operator _fused_sdp_choice: a pack that serves attention
// registers that too and answers "overrideable", and the policy that ranks providers decides whether it is asked.

namespace musa_runtime {
namespace {

using at::Tensor;
using sdp::SDPBackend;

// torch's choice for the CPU, made on the shapes and dtypes alone. flash_attention on a device that is not CUDA makes
// torch call _scaled_dot_product_flash_attention_for_cpu, which the native provider serves.
int64_t choose_for_cpu(
    const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask, double dropout_p,
    bool is_causal, std::optional<double> scale, bool enable_gqa) {
  // Aliasing is right on any device here: nothing is read.
  HostScope scope(HostScope::Mode::Alias);
  return at::cpu::_fused_sdp_choice(
      scope.host(query), scope.host(key), scope.host(value), scope.host(mask), dropout_p, is_causal, scale, enable_gqa);
}

// Nested tensors, and those of torch.func's transforms (vmap, grad, jvp), which wrap others and have no storage of their
// own: torch has rules for what its composition is made of.
bool is_composed(const Tensor& tensor) {
  return tensor.is_nested() || !tensor.has_storage();
}

int64_t choose(
    const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask, double dropout_p,
    bool is_causal, std::optional<double> scale, bool enable_gqa) {
  const bool masked = mask.has_value() && mask->defined();
  if (is_composed(query) || is_composed(key) || is_composed(value) ||
      (masked && (is_composed(*mask) || mask->requires_grad()))) {
    return static_cast<int64_t>(SDPBackend::math);
  }
  return at::_ops::_fused_sdp_choice::redispatch(
      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), query, key, value, mask, dropout_p, is_causal, scale,
      enable_gqa);
}

const bool registered = [] {
  OpPack("runtime").impl("aten::_fused_sdp_choice", TORCH_FN(choose_for_cpu));
  return true;
}();

} // namespace
} // namespace musa_runtime

namespace at::native {

REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &musa_runtime::choose)

} // namespace at::native
