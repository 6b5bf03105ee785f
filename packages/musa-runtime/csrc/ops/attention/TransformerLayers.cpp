// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_masked_softmax.h>
#include <ATen/ops/_native_multi_head_attention.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <musa_runtime/argument_checks.h>
#include <musa_runtime/op_pack.h>

#include <cmath>

// The operators of the inference fast path of torch.nn.MultiheadAttention and TransformerEncoderLayer, composed. torch's
// CPU kernels serve them if the host can address device memory; otherwise the whole layer would run through host copies.

namespace musa_runtime {
namespace {

using at::Tensor;
using Optional = std::optional<Tensor>;

bool present(const Optional& tensor) { return tensor.has_value() && tensor->defined(); }

// mask_type as in torch.nn.MultiheadAttention.merge_masks.
enum MaskType : int64_t { OfScores = 0, OfKeys = 1, Merged = 2 };

// Reshapes x [N, L, E] to [N, heads, L, E / heads].
Tensor split_heads(const Tensor& x, int64_t heads) {
  return x.unflatten(-1, {heads, x.size(-1) / heads}).transpose(1, 2);
}

// query, key and value [N, L, E]. mask: BOOL, true for excluded scores. Returns [N, L, E] and the weights.
std::tuple<Tensor, Tensor> multi_head_attention(
    const Tensor& query, const Tensor& key, const Tensor& value, int64_t embed_dim, int64_t heads,
    const Tensor& qkv_weight, const Tensor& qkv_bias, const Tensor& proj_weight, const Tensor& proj_bias,
    const Optional& mask, bool need_weights, bool average_weights, std::optional<int64_t> mask_type) {
  TORCH_CHECK(query.dim() == 3, "expected a query of 3 dimensions, (batch, length, features), and got ", query.sizes());
  TORCH_CHECK(
      query.size(2) == embed_dim && heads > 0 && embed_dim % heads == 0, "embed_dim ", embed_dim,
      " must be the last size of the query ", query.sizes(), " and a multiple of num_head ", heads);
  check_shape("_native_multi_head_attention", "key", key, query.sizes());
  check_shape("_native_multi_head_attention", "value", value, query.sizes());
  check_shape("_native_multi_head_attention", "qkv_weight", qkv_weight, {3 * embed_dim, embed_dim});
  check_shape("_native_multi_head_attention", "qkv_bias", qkv_bias, {3 * embed_dim});
  const auto part = [&](const Tensor& x, int64_t i) {
    return split_heads(
        at::linear(
            x, qkv_weight.slice(0, i * embed_dim, (i + 1) * embed_dim),
            qkv_bias.slice(0, i * embed_dim, (i + 1) * embed_dim)),
        heads);
  };
  Tensor q, k, v;
  if (key.is_same(query) && value.is_same(query)) {
    const std::vector<Tensor> parts = at::linear(query, qkv_weight, qkv_bias).chunk(3, -1);
    q = split_heads(parts[0], heads);
    k = split_heads(parts[1], heads);
    v = split_heads(parts[2], heads);
  } else {
    q = part(query, 0);
    k = part(key, 1);
    v = part(value, 2);
  }
  const bool masked = present(mask);
  const Tensor hidden = masked ? mask->to(at::kBool) : Tensor();
  const int64_t kind = mask_type.value_or(OfScores);
  Tensor out, weights;
  if (need_weights) {
    const Tensor scores = at::matmul(q * (1 / std::sqrt(static_cast<double>(q.size(3)))), k.transpose(-2, -1));
    weights = masked ? at::_masked_softmax(scores, hidden.contiguous(), 3, kind) : at::softmax(scores, -1);
    out = at::matmul(weights, v);
    weights = average_weights ? weights.mean(1) : weights;
  } else {
    Optional visible;
    if (masked) {
      visible = hidden.logical_not();
      visible = kind == OfKeys ? visible->unsqueeze(1).unsqueeze(1) : *visible;
    }
    out = at::scaled_dot_product_attention(q, k, v, visible);
  }
  return {at::linear(out.transpose(1, 2).flatten(2), proj_weight, proj_bias), std::move(weights)};
}

bool multi_head_attention_served(
    const Tensor& query, const Tensor& key, const Tensor& value, int64_t /*embed_dim*/, int64_t /*heads*/,
    const Tensor& /*qkv_weight*/, const Tensor& /*qkv_bias*/, const Tensor& /*proj_weight*/,
    const Tensor& /*proj_bias*/, const Optional& /*mask*/, bool /*need_weights*/, bool /*average_weights*/,
    std::optional<int64_t> /*mask_type*/) {
  return !query.is_nested() && !key.is_nested() && !value.is_nested();
}

Tensor encoder_layer(
    const Tensor& src, int64_t embed_dim, int64_t heads, const Tensor& qkv_weight, const Tensor& qkv_bias,
    const Tensor& proj_weight, const Tensor& proj_bias, bool use_gelu, bool norm_first, double eps,
    const Tensor& norm_weight_1, const Tensor& norm_bias_1, const Tensor& norm_weight_2, const Tensor& norm_bias_2,
    const Tensor& ffn_weight_1, const Tensor& ffn_bias_1, const Tensor& ffn_weight_2, const Tensor& ffn_bias_2,
    const Optional& mask, std::optional<int64_t> mask_type) {
  const auto norm = [&](const Tensor& x, const Tensor& weight, const Tensor& bias) {
    return at::layer_norm(x, {embed_dim}, weight, bias, eps, /*cudnn_enable=*/true);
  };
  const auto attend = [&](const Tensor& x) {
    return std::get<0>(at::_native_multi_head_attention(
        x, x, x, embed_dim, heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, /*need_weights=*/false,
        /*average_attn_weights=*/true, mask_type));
  };
  const auto feed = [&](const Tensor& x) {
    const Tensor inner = at::linear(x, ffn_weight_1, ffn_bias_1);
    return at::linear(use_gelu ? at::gelu(inner) : at::relu(inner), ffn_weight_2, ffn_bias_2);
  };
  if (norm_first) {
    const Tensor x = src + attend(norm(src, norm_weight_1, norm_bias_1));
    return x + feed(norm(x, norm_weight_2, norm_bias_2));
  }
  const Tensor x = norm(src + attend(src), norm_weight_1, norm_bias_1);
  return norm(x + feed(x), norm_weight_2, norm_bias_2);
}

bool encoder_layer_served(
    const Tensor& src, int64_t /*embed_dim*/, int64_t /*heads*/, const Tensor& /*qkv_weight*/,
    const Tensor& /*qkv_bias*/, const Tensor& /*proj_weight*/, const Tensor& /*proj_bias*/, bool /*use_gelu*/,
    bool /*norm_first*/, double /*eps*/, const Tensor& /*norm_weight_1*/, const Tensor& /*norm_bias_1*/,
    const Tensor& /*norm_weight_2*/, const Tensor& /*norm_bias_2*/, const Tensor& /*ffn_weight_1*/,
    const Tensor& /*ffn_bias_1*/, const Tensor& /*ffn_weight_2*/, const Tensor& /*ffn_bias_2*/,
    const Optional& /*mask*/, std::optional<int64_t> /*mask_type*/) {
  return !src.is_nested();
}

MUSA_OP_PACK(runtime, pack) {
  pack.impl(
      "aten::_native_multi_head_attention", TORCH_FN(multi_head_attention), TORCH_FN(multi_head_attention_served));
  pack.impl("aten::_transformer_encoder_layer_fwd", TORCH_FN(encoder_layer), TORCH_FN(encoder_layer_served));
}

} // namespace
} // namespace musa_runtime
