// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/ops/_fused_sdp_choice_ops.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <c10/musa/MUSACapabilities.h>
#include <host_copy/fallback.h>
#include <musa_runtime/attention.h>
#include <musa_runtime/op_pack.h>

// The implementation of scaled_dot_product_attention. torch queries a stub for it, not an operator, and a stub has one
// function per device. This one redispatches to the operator _fused_sdp_choice: packs that serve attention are candidates
// for that operator, so the policy that ranks providers also ranks attention.

namespace musa_runtime {
namespace {

using at::Tensor;
using sdp::SDPBackend;

// Strided nested tensors, and the wrappers of torch.func's transforms (vmap, grad, jvp), which have no storage. torch
// supports both only in the composed form.
bool needs_math(const Tensor& tensor) { return tensor.is_nested() || !tensor.has_storage(); }

// A subclass that implements operators in Python, such as DTensor, outside of a tracer. Its rules are those for CUDA's
// operators, so it gets _scaled_dot_product_efficient_attention.
bool is_subclass(const Tensor& tensor) {
  using c10::impl::TorchDispatchModeKey;
  const auto tracing = [](TorchDispatchModeKey key) {
    return c10::impl::TorchDispatchModeTLS::get_mode(key).has_value();
  };
  return tensor.unsafeGetTensorImpl()->is_python_dispatch() && !tensor.storage().device().is_meta() &&
      !tracing(TorchDispatchModeKey::FAKE) && !tracing(TorchDispatchModeKey::PROXY) &&
      !tracing(TorchDispatchModeKey::FUNCTIONAL);
}

bool suits_efficient(const sdp::sdp_params& params) {
  return sdp::check_tensor_shapes(params, false) &&
      sdp::check_batch_size_and_num_heads_dense</*supports_gqa=*/true>(params, false) &&
      (!params.attn_mask.has_value() || !params.attn_mask->requires_grad()) &&
      // The runtime's composed attention returns dropout's mask, and the rules of subclasses expect a seed.
      (params.dropout == 0 || params.query.scalar_type() != at::kDouble);
}

// Whether torch's CPU kernel of flash attention is preferred and supports the operands. It runs on device memory in place.
bool suits_host_flash(const sdp::sdp_params& params) {
  const c10::ScalarType dtype = params.query.scalar_type();
  return c10::musa::computes_on_host() && musa_runtime::has_host() &&
      (dtype == at::kFloat || dtype == at::kDouble || dtype == at::kHalf || dtype == at::kBFloat16) &&
      params.key.scalar_type() == dtype && params.value.scalar_type() == dtype &&
      sdp::check_for_dropout(params, false) && sdp::check_tensor_shapes(params, false) &&
      sdp::check_batch_size_and_num_heads_dense</*supports_gqa=*/true>(params, false) &&
      sdp::check_attn_mask_shape(params, false) && params.query.sym_size(-1) == params.key.sym_size(-1) &&
      params.query.sym_size(-1) == params.value.sym_size(-1) &&
      sdp::check_nonzero_sequence_lengths_dense(params, false) &&
      sdp::check_last_dim_stride_equals_1_dense</*ignore_singleton_dim=*/false>(params, false);
}

// No provider multiplies matrices of doubles in discrete memory; the runtime's composed attention does, also in place of
// torch's math form. Tracers get torch's form, which they can decompose.
SDPBackend composed_form(const Tensor& query, const Tensor& key, const Tensor& value) {
  const auto is_double = [](const Tensor& tensor) { return tensor.scalar_type() == at::kDouble && !is_traced(tensor); };
  const bool own = !musa_runtime::has_host() && is_double(query) && is_double(key) && is_double(value);
  return own ? SDPBackend::overrideable : SDPBackend::math;
}

// The runtime's candidate, ranked after the packs'. flash_attention makes torch call
// _scaled_dot_product_flash_attention_for_cpu on every device but CUDA; the host provider serves that.
int64_t choose_without_packs(
    const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask, double dropout_p,
    bool is_causal, std::optional<double> /*scale*/, bool enable_gqa) {
  const bool masked = mask.has_value() && mask->defined();
  const sdp::sdp_params params{query,     key,       value,     masked ? mask : std::optional<Tensor>(),
                               dropout_p, is_causal, enable_gqa};
  return static_cast<int64_t>(
      allows_fused_attention() && suits_host_flash(params) ? SDPBackend::flash_attention
                                                           : composed_form(query, key, value));
}

int64_t choose(
    const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask, double dropout_p,
    bool is_causal, std::optional<double> scale, bool enable_gqa) {
  const bool masked = mask.has_value() && mask->defined();
  if (!allows_fused_attention() && !at::globalContext().userEnabledMathSDP()) {
    return static_cast<int64_t>(SDPBackend::error); // every backend is disabled; torch raises
  }
  if (needs_math(query) || needs_math(key) || needs_math(value) || (masked && needs_math(*mask))) {
    return static_cast<int64_t>(SDPBackend::math);
  }
  if (is_subclass(query) || is_subclass(key) || is_subclass(value)) {
    const sdp::sdp_params params{query,     key,       value,     masked ? mask : std::optional<Tensor>(),
                                 dropout_p, is_causal, enable_gqa};
    return static_cast<int64_t>(
        allows_fused_attention() && suits_efficient(params) ? SDPBackend::efficient_attention : SDPBackend::math);
  }
  return at::_ops::_fused_sdp_choice::redispatch(
      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), query, key, value, mask, dropout_p, is_causal, scale,
      enable_gqa);
}

MUSA_OP_PACK(runtime, pack) { pack.impl("aten::_fused_sdp_choice", TORCH_FN(choose_without_packs)); }

} // namespace
} // namespace musa_runtime

namespace at::native {

REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &musa_runtime::choose)

} // namespace at::native
