// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/ops/_scaled_dot_product_fused_attention_overrideable_backward_ops.h>
#include <ATen/ops/_scaled_dot_product_fused_attention_overrideable_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <musa_runtime/op_pack.h>

// CUDA's dense attention operators, implemented by _scaled_dot_product_fused_attention_overrideable. Programs and torch's
// Python code call them by name: DTensor has sharding rules for them, and ring attention calls them.

namespace musa_runtime {
namespace {

using at::Tensor;
using Optional = std::optional<Tensor>;

constexpr int64_t kSumsAlignment = 32; // rows of _scaled_dot_product_efficient_attention's logsumexp

struct Forward {
  Tensor out, logsumexp, seed, offset;
};

Forward attend(
    const Tensor& query, const Tensor& key, const Tensor& value, const Optional& bias, double dropout_p, bool is_causal,
    std::optional<double> scale) {
  auto results = at::_ops::_scaled_dot_product_fused_attention_overrideable::call(
      query, key, value, bias, dropout_p, is_causal, /*return_debug_mask=*/false, scale);
  return {std::get<0>(results), std::get<1>(results), std::get<6>(results), std::get<7>(results)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> attend_backward(
    const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias,
    bool bias_gradient, const Tensor& out, const Tensor& logsumexp, double dropout_p, bool is_causal,
    const Tensor& seed, const Tensor& offset, std::optional<double> scale) {
  return at::_ops::_scaled_dot_product_fused_attention_overrideable_backward::call(
      grad_out, query, key, value, bias, {true, true, true, bias_gradient}, out, logsumexp, Tensor(), Tensor(),
      query.sym_size(-2), key.sym_size(-2), dropout_p, is_causal, seed, offset, scale);
}

void refuse_debug_mask(bool return_debug_mask) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !return_debug_mask, "Attention on a musa device returns no debug mask. Fix: pass return_debug_mask=False");
}

// ---- flash ---------------------------------------------------------------------------------------------------------

// Flash attention aligns causality at the last query and key, all other forms align it at the first.
Optional causal_mask(const Tensor& query, const Tensor& key, bool& is_causal) {
  if (!is_causal || query.size(-2) == key.size(-2)) {
    return std::nullopt;
  }
  is_causal = false;
  return at::ones({query.size(-2), key.size(-2)}, query.options().dtype(at::kBool)).tril(key.size(-2) - query.size(-2));
}

using Results = std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;

Results flash(
    const Tensor& query, const Tensor& key, const Tensor& value, double dropout_p, bool is_causal,
    bool return_debug_mask, std::optional<double> scale) {
  refuse_debug_mask(return_debug_mask);
  const Optional mask = causal_mask(query, key, is_causal);
  Forward forward = attend(query, key, value, mask, dropout_p, is_causal, scale);
  return {forward.out,  forward.logsumexp, Tensor(),       Tensor(), query.size(-2),
          key.size(-2), forward.seed,      forward.offset, Tensor()};
}

std::tuple<Tensor, Tensor, Tensor> flash_backward(
    const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& out,
    const Tensor& logsumexp, const Tensor& /*cum_seq_q*/, const Tensor& /*cum_seq_k*/, c10::SymInt /*max_q*/,
    c10::SymInt /*max_k*/, double dropout_p, bool is_causal, const Tensor& seed, const Tensor& offset,
    std::optional<double> scale) {
  const Optional mask = causal_mask(query, key, is_causal);
  auto [q, k, v, unused] = attend_backward(
      grad_out, query, key, value, mask.value_or(Tensor()), /*bias_gradient=*/false, out, logsumexp, dropout_p,
      is_causal, seed, offset, scale);
  return {q, k, v};
}

// ---- memory-efficient ----------------------------------------------------------------------------------------------

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient(
    const Tensor& query, const Tensor& key, const Tensor& value, const Optional& bias, bool compute_log_sumexp,
    double dropout_p, bool is_causal, std::optional<double> scale) {
  Forward forward = attend(query, key, value, bias, dropout_p, is_causal, scale);
  const int64_t rows = query.size(-2);
  const int64_t padded = compute_log_sumexp ? (rows + kSumsAlignment - 1) / kSumsAlignment * kSumsAlignment : 0;
  Tensor sums = at::empty({query.size(0), query.size(1), padded}, query.options().dtype(at::kFloat));
  if (compute_log_sumexp) {
    sums.narrow(-1, 0, rows).copy_(forward.logsumexp);
  }
  return {forward.out, sums, forward.seed, forward.offset};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient_backward(
    const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias,
    const Tensor& out, const Tensor& logsumexp, const Tensor& seed, const Tensor& offset, double dropout_p,
    std::array<bool, 4> grad_input_mask, bool is_causal, std::optional<double> scale) {
  return attend_backward(
      grad_out, query, key, value, bias, grad_input_mask[3], out, logsumexp.narrow(-1, 0, query.size(-2)).contiguous(),
      dropout_p, is_causal, seed, offset, scale);
}

// ---- cuDNN ---------------------------------------------------------------------------------------------------------

Results cudnn(
    const Tensor& query, const Tensor& key, const Tensor& value, const Optional& bias, bool /*compute_log_sumexp*/,
    double dropout_p, bool is_causal, bool return_debug_mask, std::optional<double> scale) {
  refuse_debug_mask(return_debug_mask);
  Forward forward = attend(query, key, value, bias, dropout_p, is_causal, scale);
  return {forward.out,  forward.logsumexp, Tensor(),       Tensor(), query.size(-2),
          key.size(-2), forward.seed,      forward.offset, Tensor()};
}

std::tuple<Tensor, Tensor, Tensor> cudnn_backward(
    const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& out,
    const Tensor& logsumexp, const Tensor& seed, const Tensor& offset, const Tensor& bias, const Tensor& /*cum_seq_q*/,
    const Tensor& /*cum_seq_k*/, c10::SymInt /*max_q*/, c10::SymInt /*max_k*/, double dropout_p, bool is_causal,
    std::optional<double> scale) {
  auto [q, k, v, unused] = attend_backward(
      grad_out, query, key, value, bias, /*bias_gradient=*/false, out, logsumexp, dropout_p, is_causal, seed, offset,
      scale);
  return {q, k, v};
}

MUSA_OP_PACK(runtime, pack) {
  pack.impl("aten::_scaled_dot_product_flash_attention", TORCH_FN(flash));
  pack.impl("aten::_scaled_dot_product_flash_attention_backward", TORCH_FN(flash_backward));
  pack.impl("aten::_scaled_dot_product_efficient_attention", TORCH_FN(efficient));
  pack.impl("aten::_scaled_dot_product_efficient_attention_backward", TORCH_FN(efficient_backward));
  pack.impl("aten::_scaled_dot_product_cudnn_attention", TORCH_FN(cudnn));
  pack.impl("aten::_scaled_dot_product_cudnn_attention_backward", TORCH_FN(cudnn_backward));
}

} // namespace
} // namespace musa_runtime
