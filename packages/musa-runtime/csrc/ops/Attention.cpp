// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/ops/_fused_sdp_choice_cpu_dispatch.h>
#include <musa_runtime/host_scope.h>

// scaled_dot_product_attention asks this stub, not an operator, which implementation a device wants. Choosing
// flash_attention on a device that is not CUDA makes torch call _scaled_dot_product_flash_attention_for_cpu, which the
// native provider serves; the choice itself is torch's own for the CPU, made on the shapes and dtypes alone.

namespace at::native {
namespace {

int64_t fused_sdp_choice_musa(
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    const std::optional<Tensor>& mask,
    double dropout_p,
    bool is_causal,
    std::optional<double> scale,
    bool enable_gqa) {
  const bool mask_needs_gradient = mask.has_value() && mask->defined() && mask->requires_grad();
  if (mask_needs_gradient || query.is_nested() || key.is_nested() || value.is_nested()) {
    return static_cast<int64_t>(sdp::SDPBackend::math);
  }
  // Aliasing is right on any device here: nothing is read.
  musa_runtime::HostScope scope(musa_runtime::HostScope::Mode::Alias);
  return at::cpu::_fused_sdp_choice(
      scope.host(query), scope.host(key), scope.host(value), scope.host(mask), dropout_p, is_causal, scale, enable_gqa);
}

} // namespace

REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &fused_sdp_choice_musa)

} // namespace at::native
