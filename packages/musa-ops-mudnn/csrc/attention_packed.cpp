// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Attention within packed sequences, for torch.nn.attention.varlen, by RunFlashVarlen. Falls back to the runtime's
// composed implementation for windows, pages, positional biases, dense batches, and devices without flash attention.
#include "attention.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/musa/MUSACompat.h>
#include <musa_runtime/attention.h>

#include <limits>

namespace musa_ops_mudnn {
namespace {

using at::Tensor;
using musa_runtime::PackedSequences;
using Optional = std::optional<Tensor>;
using Length = std::optional<c10::SymInt>;

bool is_offsets(const Tensor& offsets, const Tensor& query) {
  return serves_tensor(offsets, one(at::kInt)) && offsets.device() == query.device() && offsets.dim() == 1 &&
      offsets.numel() >= 2 && offsets.is_contiguous();
}

bool fits_int(const c10::SymInt& length) {
  const std::optional<int64_t> value = length.maybe_as_int();
  return value.has_value() && *value > 0 && *value <= std::numeric_limits<int>::max();
}

bool served(
    const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& offsets_q, const Tensor& offsets_k,
    const c10::SymInt& max_q, const c10::SymInt& max_k, double dropout_p, bool is_causal, std::optional<double> scale,
    const Length& window_left, const Length& window_right) {
  if (!serves<matrix_types>(query, key, value) || query.dim() != 3 || key.dim() != 3 || value.dim() != 3 ||
      key.scalar_type() != query.scalar_type() || value.scalar_type() != query.scalar_type() ||
      !is_offsets(offsets_q, query) || !is_offsets(offsets_k, query) || offsets_q.numel() != offsets_k.numel() ||
      !fits_int(max_q) || !fits_int(max_k)) {
    return false;
  }
  const auto unlimited = [](const Length& window) { return !window.has_value() || *window < 0; };
  // muDNN does not document the alignment of causal sequences with different numbers of queries and keys.
  const bool same_lengths = offsets_q.const_data_ptr() == offsets_k.const_data_ptr() && max_q == max_k;
  return key.size(0) == value.size(0) && key.size(1) == value.size(1) && query.size(1) % key.size(1) == 0 &&
      key.size(2) == query.size(2) && has_flash(query, value) &&
      query.size(1) * value.size(2) <= std::numeric_limits<int>::max() && dropout_p >= 0 && dropout_p < 1 &&
      serves_scale(scale) && unlimited(window_left) &&
      (is_causal ? same_lengths : unlimited(window_right) || (same_lengths && *window_right == 0));
}

bool sees_no_future(bool is_causal, const Length& window_right) {
  return is_causal || (window_right.has_value() && *window_right == 0);
}

Attention attention_of(
    const Tensor& query, const Tensor& value, const Tensor& offsets, int64_t max_q, int64_t max_k, double dropout_p,
    bool is_causal, std::optional<double> scale) {
  return configured(
      {offsets.numel() - 1, query.size(1), max_q, max_k, value.size(2)}, query.scalar_type(), dropout_p, is_causal,
      scale);
}

Tensor empty_keep(const Tensor& query, const Tensor& offsets, int64_t max_q, int64_t max_k) {
  return at::empty({offsets.numel() - 1, query.size(1), max_q, max_k}, query.options().dtype(at::kBool));
}

struct Run {
  const Attention& op;
  const Tensor &q, &k, &v, &offsets_q, &offsets_k;

  void operator()(const Tensor& out, const Tensor& logsumexp, const Tensor& keep) const {
    const OnDevice on(q);
    dnn::Tensor result = describe(out);
    dnn::Tensor sums = describe(logsumexp);
    dnn::Tensor kept = describe(keep);
    check(
        op.RunFlashVarlen(
            on.handle(), result, sums, operand(q), operand(k), operand(v), dnn::Tensor(), kept, operand(offsets_q),
            operand(offsets_k), on.workspace()),
        "ScaledDotProductAttention::RunFlashVarlen", {&q, &k, &v});
  }
};

using PackedResults = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

PackedResults flash_attention(
    const Tensor& query, const Tensor& key, const Tensor& value, const Optional& cum_seq_q, const Optional& cum_seq_k,
    c10::SymInt max_q, c10::SymInt max_k, double dropout_p, bool is_causal, bool /*return_debug_mask*/,
    std::optional<double> scale, Length /*window_left*/, Length window_right, const Optional& /*seqused_k*/,
    const Optional& /*alibi_slopes*/
        MUSA_SINCE_TORCH_2_12(, const Optional& /*block_table*/, std::optional<int64_t> /*num_splits*/)) {
  const int64_t longest_q = max_q.expect_int();
  const int64_t longest_k = max_k.expect_int();
  const Tensor q = with_rows(query);
  const Tensor k = with_rows(key);
  const Tensor v = with_rows(value);
  Attention op =
      attention_of(q, v, *cum_seq_q, longest_q, longest_k, dropout_p, sees_no_future(is_causal, window_right), scale);
  Tensor out = at::empty({q.size(0), q.size(1), v.size(2)}, q.options());
  const Tensor sums = at::empty({cum_seq_q->numel() - 1, q.size(1), longest_q}, q.options().dtype(at::kFloat));
  Seeds seeds;
  Tensor keep;
  if (dropout_p > 0) {
    keep = empty_keep(q, *cum_seq_q, longest_q, longest_k);
    seeds = Seeds::drawn(q, keep.numel());
    seeds.give_to(op);
  }
  Run{op, q, k, v, *cum_seq_q, *cum_seq_k}(out, sums, keep);
  // muDNN writes [B, heads, longest]; torch's operator returns [heads, T].
  Tensor logsumexp = PackedSequences(*cum_seq_q, longest_q, q.size(0)).pack(sums.transpose(1, 2)).t().contiguous();
  return {std::move(out), std::move(logsumexp), seeds.seed, seeds.offset, at::empty({0}, q.options())};
}

bool flash_attention_served(
    const Tensor& query, const Tensor& key, const Tensor& value, const Optional& cum_seq_q, const Optional& cum_seq_k,
    c10::SymInt max_q, c10::SymInt max_k, double dropout_p, bool is_causal, bool return_debug_mask,
    std::optional<double> scale, Length window_left, Length window_right, const Optional& seqused_k,
    const Optional& alibi_slopes
        MUSA_SINCE_TORCH_2_12(, const Optional& block_table, std::optional<int64_t> /*num_splits*/)) {
  return !return_debug_mask && given(cum_seq_q) && given(cum_seq_k) && !given(seqused_k) && !given(alibi_slopes) &&
      MUSA_SINCE_TORCH_2_12(!given(block_table) &&) served(
          query, key, value, *cum_seq_q, *cum_seq_k, max_q, max_k, dropout_p, is_causal, scale, window_left,
          window_right);
}

std::tuple<Tensor, Tensor, Tensor> flash_attention_backward(
    const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& out,
    const Tensor& logsumexp, const Tensor& cum_seq_q, const Tensor& cum_seq_k, c10::SymInt max_q, c10::SymInt max_k,
    double dropout_p, bool is_causal, const Tensor& rng_state, const Tensor& unused, std::optional<double> scale,
    Length /*window_left*/, Length window_right) {
  const int64_t longest_q = max_q.expect_int();
  const int64_t longest_k = max_k.expect_int();
  const Tensor q = with_rows(query);
  const Tensor k = with_rows(key);
  const Tensor v = with_rows(value);
  const Tensor gradient = with_rows(grad_out);
  const Tensor result = with_rows(out);
  Attention op =
      attention_of(q, v, cum_seq_q, longest_q, longest_k, dropout_p, sees_no_future(is_causal, window_right), scale);
  const Tensor sums = PackedSequences(cum_seq_q, longest_q, q.size(0)).pad(logsumexp.t()).transpose(1, 2).contiguous();
  Tensor keep;
  if (dropout_p > 0) {
    Seeds(rng_state, unused).give_to(op);
    keep = empty_keep(q, cum_seq_q, longest_q, longest_k);
    Run{op, q, k, v, cum_seq_q, cum_seq_k}(at::empty_like(result), at::empty_like(sums), keep);
  }
  std::tuple<Tensor, Tensor, Tensor> gradients{at::empty_like(query), at::empty_like(key), at::empty_like(value)};
  const OnDevice on(q);
  dnn::Tensor dq = describe(std::get<0>(gradients));
  dnn::Tensor dk = describe(std::get<1>(gradients));
  dnn::Tensor dv = describe(std::get<2>(gradients));
  check(
      op.RunFlashVarlenBwd(
          on.handle(), dq, dk, dv, operand(gradient), operand(q), operand(k), operand(v), dnn::Tensor(),
          operand(result), operand(sums), operand(keep), operand(cum_seq_q), operand(cum_seq_k), on.workspace()),
      "ScaledDotProductAttention::RunFlashVarlenBwd", {&gradient, &q, &k, &v});
  return gradients;
}

bool flash_attention_backward_served(
    const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& out,
    const Tensor& logsumexp, const Tensor& cum_seq_q, const Tensor& cum_seq_k, c10::SymInt max_q, c10::SymInt max_k,
    double dropout_p, bool is_causal, const Tensor& rng_state, const Tensor& unused, std::optional<double> scale,
    Length window_left, Length window_right) {
  return cum_seq_q.defined() && cum_seq_k.defined() &&
      served(query, key, value, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, scale, window_left,
             window_right) &&
      serves<matrix_types>(query, grad_out, out, logsumexp) && grad_out.scalar_type() == query.scalar_type() &&
      out.scalar_type() == query.scalar_type() && grad_out.sizes() == out.sizes() && out.dim() == 3 &&
      out.size(0) == query.size(0) && out.size(1) == query.size(1) && out.size(2) == value.size(2) &&
      logsumexp.scalar_type() == at::kFloat && logsumexp.dim() == 2 && logsumexp.size(0) == query.size(1) &&
      logsumexp.size(1) == query.size(0) &&
      // With dropout these must be seeds; the runtime's composed attention returns a mask in their place.
      (dropout_p == 0 || (rng_state.dim() == 0 && unused.defined()));
}

} // namespace

void declare_packed_attention(OpPack& pack) {
  pack.impl("aten::_flash_attention_forward", TORCH_FN(flash_attention), TORCH_FN(flash_attention_served));
  pack.impl(
      "aten::_flash_attention_backward", TORCH_FN(flash_attention_backward), TORCH_FN(flash_attention_backward_served));
}

} // namespace musa_ops_mudnn
