// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Scaled dot product attention: RunFlash if the device supports it for this head size, otherwise RunMath.
//
// The dropout mask is not saved for the backward pass, which regenerates it from the seed and offset.
#include "attention.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/SDPBackend.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <c10/musa/MUSAFunctions.h>
#include <musa_runtime/attention.h>

#include <algorithm>
#include <array>
#include <limits>

#include "dropout.h"
#include "support/elementwise.h"

namespace musa_ops_mudnn {

using at::Tensor;

// ---- Shared with packed sequences ----------------------------------------------------------------------------------

bool has_flash(const Tensor& query, const Tensor& value) {
  const musaDeviceProp& card = c10::musa::device_properties(query.device().index());
  const int architecture = card.major * 10 + card.minor;
  const int64_t of_key = query.size(-1);
  const int64_t of_value = value.size(-1);
  const int64_t larger = std::max(of_key, of_value);
  return architecture >= 31 ? larger <= 160 || (of_key == 192 && of_value == 128) : architecture >= 22 && larger <= 128;
}

Attention configured(
    const AttentionSizes& sizes, at::ScalarType dtype, double dropout_p, bool is_causal, std::optional<double> scale) {
  Attention op;
  check(op.SetComputeMode(compute_mode(dtype)), "ScaledDotProductAttention::SetComputeMode");
  check(op.SetEmbedDim(static_cast<int>(sizes.heads * sizes.value_size)), "ScaledDotProductAttention::SetEmbedDim");
  check(op.SetHeadsNum(static_cast<int>(sizes.heads)), "ScaledDotProductAttention::SetHeadsNum");
  check(op.SetBatchSize(static_cast<int>(sizes.batch)), "ScaledDotProductAttention::SetBatchSize");
  check(op.SetMaxSeqlenQ(static_cast<int>(sizes.longest_q)), "ScaledDotProductAttention::SetMaxSeqlenQ");
  check(op.SetMaxSeqlenK(static_cast<int>(sizes.longest_k)), "ScaledDotProductAttention::SetMaxSeqlenK");
  check(op.SetCausal(is_causal), "ScaledDotProductAttention::SetCausal");
  check(op.SetDropoutP(dropout_p), "ScaledDotProductAttention::SetDropoutP");
  check(op.SetTraining(true), "ScaledDotProductAttention::SetTraining");
  check(
      op.SetIsDeterministic(settings().deterministic || at::globalContext().deterministicAlgorithms()),
      "ScaledDotProductAttention::SetIsDeterministic");
  if (scale.has_value()) {
    check(op.SetScale(*scale), "ScaledDotProductAttention::SetScale");
  }
  return op;
}

namespace {

bool has_rows(const Tensor& tensor) {
  const at::IntArrayRef sizes = tensor.sizes();
  const at::IntArrayRef strides = tensor.strides();
  bool good = sizes.back() == 1 || strides.back() == 1;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    good = good && (sizes[i] == 1 || strides[i] != 0);
  }
  return good;
}

} // namespace

Tensor with_rows(const Tensor& tensor) { return has_rows(tensor) ? tensor : tensor.contiguous(); }

namespace {

// Computes target = *source + increment on the device.
void copy_number(const Tensor& target, int64_t* source, uint64_t increment) {
  dnn::Unary op;
  check(op.SetMode(UnaryMode::ADD), "Unary::SetMode");
  check(op.SetAlpha(static_cast<int64_t>(increment)), "Unary::SetAlpha");
  dnn::Tensor in;
  check(in.SetAddr(source), "Tensor::SetAddr");
  check(in.SetType(dnn::Tensor::Type::INT64), "Tensor::SetType");
  check(in.SetNdInfo(0, target.sizes().data(), target.strides().data()), "Tensor::SetNdInfo");
  const OnDevice on(target);
  dnn::Tensor out = describe(target);
  check(op.Run(on.handle(), out, in), "Unary::Run", {&target});
}

} // namespace

Seeds::Seeds() : seed(at::detail::empty_cpu({}, at::kLong)), offset(at::detail::empty_cpu({}, at::kLong)) {
  *seed.mutable_data_ptr<int64_t>() = 0;
  *offset.mutable_data_ptr<int64_t>() = 0;
}

Seeds Seeds::drawn(const Tensor& like, int64_t count) {
  const at::PhiloxMusaState numbers = draw_numbers(like, count);
  if (!numbers.captured_) {
    Seeds seeds;
    *seeds.seed.mutable_data_ptr<int64_t>() = static_cast<int64_t>(numbers.seed_.val);
    *seeds.offset.mutable_data_ptr<int64_t>() = static_cast<int64_t>(numbers.offset_.val);
    return seeds;
  }
  const auto options = like.options().dtype(at::kLong);
  Seeds seeds(at::empty({}, options), at::empty({}, options));
  copy_number(seeds.seed, numbers.seed_.ptr, 0);
  copy_number(seeds.offset, numbers.offset_.ptr, numbers.offset_intragraph_);
  return seeds;
}

void Seeds::give_to(Attention& op) const {
  // The third argument selects between values and pointers.
  if (seed.is_cpu()) {
    check(
        op.SetSeed(
            static_cast<uint64_t>(*seed.const_data_ptr<int64_t>()),
            static_cast<uint64_t>(*offset.const_data_ptr<int64_t>()), 0, nullptr, nullptr, 0),
        "ScaledDotProductAttention::SetSeed");
  } else {
    check(
        op.SetSeed(
            0, 0, 1, reinterpret_cast<const uint64_t*>(seed.const_data_ptr()),
            reinterpret_cast<const uint64_t*>(offset.const_data_ptr()), 0),
        "ScaledDotProductAttention::SetSeed");
  }
}

namespace {

using Optional = std::optional<Tensor>;

// ---- Predicates ----------------------------------------------------------------------------------------------------

bool fits_mask(const Tensor& mask, const Tensor& query, const Tensor& key) {
  if (!serves_tensor(mask, bool_type | one(at::kFloat) | one(query.scalar_type())) || mask.device() != query.device() ||
      mask.dim() < 2 || mask.dim() > query.dim()) {
    return false;
  }
  const std::array<int64_t, 4> scores{
      query.dim() == 4 ? query.size(0) : 1, query.size(-3), query.size(-2), key.size(-2)};
  for (int64_t i = 1; i <= mask.dim(); ++i) {
    const int64_t size = mask.size(-i);
    if (size != 1 && size != scores[static_cast<size_t>(4 - i)]) {
      return false;
    }
  }
  return true;
}

// Operands of shape [N, heads, L, E] or [heads, L, E].
bool served(
    const Tensor& query, const Tensor& key, const Tensor& value, const Optional& mask, double dropout_p, bool is_causal,
    std::optional<double> scale) {
  if (!serves<matrix_types>(query, key, value) || (query.dim() != 4 && query.dim() != 3) || key.dim() != query.dim() ||
      value.dim() != query.dim() || key.scalar_type() != query.scalar_type() ||
      value.scalar_type() != query.scalar_type()) {
    return false;
  }
  const bool masked = given(mask);
  return (query.dim() == 3 || (key.size(0) == query.size(0) && value.size(0) == query.size(0))) &&
      value.size(-3) == key.size(-3) && query.size(-3) % key.size(-3) == 0 && key.size(-2) == value.size(-2) &&
      key.size(-1) == query.size(-1) &&
      // torch's fake kernel does not handle three dimensions with unequal head sizes.
      (query.dim() == 4 || query.size(-1) == value.size(-1)) &&
      query.size(-3) * value.size(-1) <= std::numeric_limits<int>::max() && dropout_p >= 0 && dropout_p < 1 &&
      serves_scale(scale) && !(is_causal && masked) && (!masked || fits_mask(*mask, query, key));
}

// Whether the tensor has symbolic sizes, or belongs to one of torch.func's transforms. The latter have no storage, and
// rules only for torch's own attention operators.
bool is_special(const Tensor& tensor) {
  return tensor.is_nested() || tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides() || !tensor.has_storage();
}

int64_t fused_sdp_choice(
    const Tensor& /*query*/, const Tensor& /*key*/, const Tensor& /*value*/, const Optional& /*attn_mask*/,
    double /*dropout_p*/, bool /*is_causal*/, std::optional<double> /*scale*/, bool /*enable_gqa*/) {
  return static_cast<int64_t>(at::SDPBackend::overrideable);
}

// If this returns false, the runtime's candidate chooses the backend.
bool fused_sdp_choice_served(
    const Tensor& query, const Tensor& key, const Tensor& value, const Optional& attn_mask, double dropout_p,
    bool is_causal, std::optional<double> scale, bool enable_gqa) {
  const bool masked = given(attn_mask);
  return musa_runtime::allows_fused_attention() && !is_special(query) && !is_special(key) && !is_special(value) &&
      (!masked || (!is_special(*attn_mask) && !attn_mask->requires_grad())) &&
      served(query, key, value, attn_mask, dropout_p, is_causal, scale) &&
      (enable_gqa || query.size(-3) == key.size(-3));
}

// ---- Operands ------------------------------------------------------------------------------------------------------

// Returns a tensor of shape [N, heads, L, E] (N is 1 for three dimensions) whose strides muDNN supports.
Operand batched(const Tensor& tensor) {
  if (tensor.dim() == 3) {
    return with_rows(tensor.unsqueeze(0));
  }
  return has_rows(tensor) ? Operand::borrowed(tensor) : Operand(tensor.contiguous());
}

// The mask, in the smallest form that muDNN supports.
struct Mask {
  dnn::Tensor described;
  Tensor made;             // keeps a mask created here alive until the call is enqueued
  bool is_padding = false; // [N, S]: one row per sequence
  bool is_causal = false;  // computed by muDNN

  Mask(const Optional& mask, const Tensor& query, const Tensor& key, bool causal) {
    const int64_t n = query.size(0);
    const int64_t heads = query.size(1);
    const int64_t l = query.size(2);
    const int64_t s = key.size(2);
    if (causal && l != s) {
      // muDNN does not document where the diagonal starts in this case. In torch, query i attends to the keys up to i.
      made = at::ones({l, s}, query.options().dtype(at::kBool)).tril_();
      described = describe(made);
      return;
    }
    is_causal = causal;
    if (!given(mask)) {
      return;
    }
    Tensor whole = *mask;
    while (whole.dim() < 4) {
      whole = whole.unsqueeze(0);
    }
    const bool of_batch = whole.size(0) != 1;
    const bool of_heads = whole.size(1) != 1;
    if (!of_batch && !of_heads) {
      described = operand(whole.select(0, 0).select(0, 0).expand({l, s}));
    } else if (!of_heads && whole.size(2) == 1) {
      is_padding = true;
      described = operand(whole.select(2, 0).select(1, 0).expand({n, s}));
    } else if (!of_batch) {
      described = operand(whole.select(0, 0).expand({heads, l, s}));
    } else {
      described = operand(whole.expand({n, heads, l, s}));
    }
  }
};

Attention attention_of(
    const Tensor& query, const Tensor& key, const Tensor& value, const Mask& mask, double dropout_p,
    std::optional<double> scale) {
  Attention op = configured(
      {query.size(0), query.size(1), query.size(2), key.size(2), value.size(3)}, query.scalar_type(), dropout_p,
      mask.is_causal, scale);
  check(op.SetMaskMode(mask.is_padding), "ScaledDotProductAttention::SetMaskMode");
  return op;
}

Tensor empty_scores(const Tensor& query, const Tensor& key, at::ScalarType dtype) {
  return new_empty(query, {query.size(0), query.size(1), query.size(2), key.size(2)}, dtype);
}

// Has the query's shape, with the head size of the value.
Tensor empty_result(const Tensor& query, const Tensor& value) {
  if (query.size(-1) == value.size(-1)) {
    return empty_as(query, query.scalar_type());
  }
  std::vector<int64_t> sizes = query.sizes().vec();
  sizes.back() = value.size(-1);
  return musa_runtime::empty_attention_output(query, sizes);
}

// ---- The operators -------------------------------------------------------------------------------------------------

// The results of a forward pass. keep and weights may be undefined.
struct Forward {
  Tensor out, logsumexp, keep, weights;
};

void run_flash(
    const Attention& op, const Forward& to, const Tensor& q, const Tensor& k, const Tensor& v, const Mask& mask) {
  const OnDevice on(q);
  dnn::Tensor out = describe(to.out);
  dnn::Tensor logsumexp = describe(to.logsumexp);
  dnn::Tensor keep = describe(to.keep);
  check(
      op.RunFlash(
          on.handle(), out, logsumexp, operand(q), operand(k), operand(v), mask.described, keep, on.workspace()),
      "ScaledDotProductAttention::RunFlash", {&q, &k, &v});
}

void run_math(
    const Attention& op, const Forward& to, const Tensor& q, const Tensor& k, const Tensor& v, const Mask& mask) {
  const OnDevice on(q);
  dnn::Tensor out = describe(to.out);
  dnn::Tensor weights = describe(to.weights);
  dnn::Tensor keep = describe(to.keep);
  check(
      op.RunMath(on.handle(), out, weights, operand(q), operand(k), operand(v), mask.described, keep, on.workspace()),
      "ScaledDotProductAttention::RunMath", {&q, &k, &v});
}

using Results = std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;

Results attention(
    const Tensor& query, const Tensor& key, const Tensor& value, const Optional& attn_bias, double dropout_p,
    bool is_causal, bool /*return_debug_mask*/, std::optional<double> scale) {
  const Operand q = batched(query);
  const Operand k = batched(key);
  const Operand v = batched(value);
  const Mask mask(attn_bias, q, k, is_causal);
  Attention op = attention_of(q, k, v, mask, dropout_p, scale);
  Tensor out = empty_result(query, value);
  Forward to;
  to.out = query.dim() == 3 ? out.unsqueeze(0) : out;
  to.logsumexp = new_empty(q, {q->size(0), q->size(1), q->size(2)}, at::kFloat);
  Seeds seeds;
  if (dropout_p > 0) {
    to.keep = empty_scores(q, k, at::kBool);
    seeds = Seeds::drawn(q, to.keep.numel());
    seeds.give_to(op);
  }
  if (has_flash(q, v)) {
    run_flash(op, to, q, k, v, mask);
  } else {
    to.weights = empty_scores(q, k, q->scalar_type());
    run_math(op, to, q, k, v, mask);
    // RunMath does not return logsumexp, and its backward pass does not need it.
    run_fill(to.logsumexp, std::numeric_limits<double>::quiet_NaN());
  }
  return {out,        to.logsumexp, Tensor(), Tensor(), c10::SymInt(q->size(2)), c10::SymInt(k->size(2)),
          seeds.seed, seeds.offset, Tensor()};
}

bool attention_served(
    const Tensor& query, const Tensor& key, const Tensor& value, const Optional& attn_bias, double dropout_p,
    bool is_causal, bool return_debug_mask, std::optional<double> scale) {
  return !return_debug_mask && served(query, key, value, attn_bias, dropout_p, is_causal, scale);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> attention_backward(
    const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_bias,
    std::array<bool, 4> /*grad_input_mask*/, const Tensor& out, const Tensor& logsumexp, const Tensor& /*cum_seq_q*/,
    const Tensor& /*cum_seq_k*/, c10::SymInt /*max_q*/, c10::SymInt /*max_k*/, double dropout_p, bool is_causal,
    const Tensor& philox_seed, const Tensor& philox_offset, std::optional<double> scale) {
  const Operand q = batched(query);
  const Operand k = batched(key);
  const Operand v = batched(value);
  const Operand gradient = batched(grad_out);
  const Operand result = batched(out);
  const Mask mask(attn_bias, q, k, is_causal);
  Attention op = attention_of(q, k, v, mask, dropout_p, scale);
  const bool flash = has_flash(q, v);
  Forward again;
  if (dropout_p > 0) {
    Seeds(philox_seed, philox_offset).give_to(op);
    again.keep = empty_scores(q, k, at::kBool);
  }
  if (dropout_p > 0 || !flash) {
    again.out = at::empty_like(result);
    if (flash) {
      again.logsumexp = at::empty_like(logsumexp);
      run_flash(op, again, q, k, v, mask);
    } else {
      again.weights = empty_scores(q, k, q->scalar_type());
      run_math(op, again, q, k, v, mask);
    }
  }
  Tensor grad_query = at::empty_like(query);
  Tensor grad_key = at::empty_like(key);
  Tensor grad_value = at::empty_like(value);
  const auto whole = [](const Tensor& tensor) { return tensor.dim() == 3 ? tensor.unsqueeze(0) : tensor; };
  const OnDevice on(q);
  dnn::Tensor dq = describe(whole(grad_query));
  dnn::Tensor dk = describe(whole(grad_key));
  dnn::Tensor dv = describe(whole(grad_value));
  const dnn::Tensor keep = operand(again.keep);
  if (flash) {
    check(
        op.RunFlashBwd(
            on.handle(), dq, dk, dv, operand(gradient), operand(q), operand(k), operand(v), mask.described,
            operand(result), operand(logsumexp), keep, on.workspace()),
        "ScaledDotProductAttention::RunFlashBwd", {&*gradient, &*q, &*k, &*v});
  } else {
    const Tensor grad_weights = at::empty_like(again.weights);
    dnn::Tensor of_weights = describe(grad_weights);
    check(
        op.RunMathBwd(
            on.handle(), dq, dk, dv, of_weights, operand(gradient), operand(q), operand(k), operand(v),
            operand(again.weights), keep, on.workspace()),
        "ScaledDotProductAttention::RunMathBwd", {&*gradient, &*q, &*k, &*v});
  }
  return {std::move(grad_query), std::move(grad_key), std::move(grad_value), Tensor()};
}

// muDNN computes no gradient of a mask; fused_sdp_choice_served declines masks that require one.
bool attention_backward_served(
    const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_bias,
    std::array<bool, 4> grad_input_mask, const Tensor& out, const Tensor& logsumexp, const Tensor& /*cum_seq_q*/,
    const Tensor& /*cum_seq_k*/, c10::SymInt /*max_q*/, c10::SymInt /*max_k*/, double dropout_p, bool is_causal,
    const Tensor& philox_seed, const Tensor& philox_offset, std::optional<double> scale) {
  return !grad_input_mask[3] && served(query, key, value, attn_bias, dropout_p, is_causal, scale) &&
      serves<matrix_types>(query, grad_out, out, logsumexp) && grad_out.sizes() == out.sizes() &&
      grad_out.scalar_type() == query.scalar_type() && out.scalar_type() == query.scalar_type() &&
      out.sizes().slice(0, out.dim() - 1) == query.sizes().slice(0, query.dim() - 1) &&
      out.size(-1) == value.size(-1) && logsumexp.scalar_type() == at::kFloat && logsumexp.dim() == 3 &&
      logsumexp.numel() == query.numel() / query.size(-1) &&
      // With dropout these must be seeds; the runtime's composed attention returns a mask in their place.
      (dropout_p == 0 || (philox_seed.defined() && philox_offset.defined() && philox_seed.dim() == 0));
}

} // namespace

void declare_attention(OpPack& pack) {
  // The runtime redispatches the choice of scaled_dot_product_attention to this operator, so that the policy (without
  // muDNN, or with torch's CPU kernels first) applies to attention too.
  pack.impl("aten::_fused_sdp_choice", TORCH_FN(fused_sdp_choice), TORCH_FN(fused_sdp_choice_served));
  pack.impl("aten::_scaled_dot_product_fused_attention_overrideable", TORCH_FN(attention), TORCH_FN(attention_served));
  pack.impl(
      "aten::_scaled_dot_product_fused_attention_overrideable_backward", TORCH_FN(attention_backward),
      TORCH_FN(attention_backward_served));
  declare_packed_attention(pack);
}

} // namespace musa_ops_mudnn
