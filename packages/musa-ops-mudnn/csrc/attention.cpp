// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Scaled dot product attention: RunFlash where the card has it for heads of that dimension, RunMath else.
//
// Dropout's mask is not kept for the backward pass, which draws it again from the seed and offset it is given.
#include <ATen/Context.h>
#include <ATen/SDPBackend.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/musa/MUSAFunctions.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "dropout.h"
#include "families.h"
#include "support/elementwise.h"
#include "support/predicates.h"
#include "support/tensor.h"

namespace musa_ops_mudnn {
namespace {

using at::Tensor;
using Optional = std::optional<Tensor>;
using Attention = dnn::ScaledDotProductAttention;

// ---- What is served ------------------------------------------------------------------------------------------------

bool has_flash(const Tensor& query, const Tensor& value) {
  const musaDeviceProp& card = c10::musa::device_properties(query.device().index());
  const int architecture = card.major * 10 + card.minor;
  const int64_t of_key = query.size(3);
  const int64_t of_value = value.size(3);
  const int64_t larger = std::max(of_key, of_value);
  return architecture >= 31 ? larger <= 160 || (of_key == 192 && of_value == 128)
                            : architecture >= 22 && larger <= 128;
}

bool fits_mask(const Tensor& mask, const Tensor& query, const Tensor& key) {
  if (!serves_tensor(mask, bool_type | one(at::kFloat) | one(query.scalar_type())) ||
      mask.device() != query.device() || mask.dim() < 2 || mask.dim() > 4) {
    return false;
  }
  const std::array<int64_t, 4> scores{query.size(0), query.size(1), query.size(2), key.size(2)};
  for (int64_t i = 1; i <= mask.dim(); ++i) {
    const int64_t size = mask.size(-i);
    if (size != 1 && size != scores[static_cast<size_t>(4 - i)]) {
      return false;
    }
  }
  return true;
}

bool served(
    const Tensor& query, const Tensor& key, const Tensor& value, const Optional& mask, double dropout_p,
    bool is_causal, std::optional<double> scale) {
  if (!serves<matrix_types>(query, key, value) || query.dim() != 4 || key.dim() != 4 || value.dim() != 4 ||
      key.scalar_type() != query.scalar_type() || value.scalar_type() != query.scalar_type()) {
    return false;
  }
  const bool masked = given(mask);
  return key.size(0) == query.size(0) && value.size(0) == query.size(0) && value.size(1) == key.size(1) &&
      query.size(1) % key.size(1) == 0 && key.size(2) == value.size(2) && key.size(3) == query.size(3) &&
      query.size(1) * value.size(3) <= std::numeric_limits<int>::max() && dropout_p >= 0 && dropout_p < 1 &&
      // A scale of 0 is muDNN's word for the usual one.
      (!scale.has_value() || (std::isfinite(*scale) && *scale != 0)) &&
      // Where queries and keys differ in number, muDNN does not say which corner the diagonal starts in.
      (!is_causal || (!masked && query.size(2) == key.size(2))) && (!masked || fits_mask(*mask, query, key));
}

// Tensors whose sizes cannot be asked for, and those of torch.func's transforms, which have no storage of their own and
// rules for torch's own forms of attention only.
bool is_special(const Tensor& tensor) {
  return tensor.is_nested() || tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides() || !tensor.has_storage();
}

int64_t fused_sdp_choice(
    const Tensor& /*query*/, const Tensor& /*key*/, const Tensor& /*value*/, const Optional& /*attn_mask*/,
    double /*dropout_p*/, bool /*is_causal*/, std::optional<double> /*scale*/, bool /*enable_gqa*/) {
  return static_cast<int64_t>(at::SDPBackend::overrideable);
}

// Declined: torch's own choice stands.
bool fused_sdp_choice_served(
    const Tensor& query, const Tensor& key, const Tensor& value, const Optional& attn_mask, double dropout_p,
    bool is_causal, std::optional<double> scale, bool enable_gqa) {
  const bool masked = given(attn_mask);
  return at::globalContext().userEnabledOverrideableSDP() && !is_special(query) && !is_special(key) &&
      !is_special(value) && (!masked || (!is_special(*attn_mask) && !attn_mask->requires_grad())) &&
      served(query, key, value, attn_mask, dropout_p, is_causal, scale) &&
      (enable_gqa || query.size(1) == key.size(1));
}

// ---- Operands ------------------------------------------------------------------------------------------------------

// Rows without gaps between their elements, none of them standing for several.
Tensor with_rows(const Tensor& tensor) {
  bool good = tensor.size(3) == 1 || tensor.stride(3) == 1;
  for (int64_t i = 0; i < 3; ++i) {
    good = good && (tensor.size(i) == 1 || tensor.stride(i) != 0);
  }
  return good ? tensor : tensor.contiguous();
}

// The mask in the smallest of the forms that muDNN knows.
struct Mask {
  dnn::Tensor described;
  bool is_padding = false; // [N, S]: a row for each sequence

  Mask(const Optional& mask, const Tensor& query, const Tensor& key) {
    if (!mask.has_value() || !mask->defined()) {
      return;
    }
    const int64_t n = query.size(0);
    const int64_t heads = query.size(1);
    const int64_t l = query.size(2);
    const int64_t s = key.size(2);
    Tensor whole = *mask;
    while (whole.dim() < 4) {
      whole = whole.unsqueeze(0);
    }
    const bool of_batch = whole.size(0) != 1;
    const bool of_heads = whole.size(1) != 1;
    if (!of_batch && !of_heads) {
      described = describe(whole.select(0, 0).select(0, 0).expand({l, s}));
    } else if (!of_heads && whole.size(2) == 1) {
      is_padding = true;
      described = describe(whole.select(2, 0).select(1, 0).expand({n, s}));
    } else if (!of_batch) {
      described = describe(whole.select(0, 0).expand({heads, l, s}));
    } else {
      described = describe(whole.expand({n, heads, l, s}));
    }
  }
};

Attention attention_of(
    const Tensor& query, const Tensor& key, const Tensor& value, const Mask& mask, double dropout_p, bool is_causal,
    std::optional<double> scale) {
  Attention op;
  check(op.SetComputeMode(compute_mode(query.scalar_type())), "ScaledDotProductAttention::SetComputeMode");
  check(
      op.SetEmbedDim(static_cast<int>(query.size(1) * value.size(3))), "ScaledDotProductAttention::SetEmbedDim");
  check(op.SetHeadsNum(static_cast<int>(query.size(1))), "ScaledDotProductAttention::SetHeadsNum");
  check(op.SetBatchSize(static_cast<int>(query.size(0))), "ScaledDotProductAttention::SetBatchSize");
  check(op.SetMaxSeqlenQ(static_cast<int>(query.size(2))), "ScaledDotProductAttention::SetMaxSeqlenQ");
  check(op.SetMaxSeqlenK(static_cast<int>(key.size(2))), "ScaledDotProductAttention::SetMaxSeqlenK");
  check(op.SetMaskMode(mask.is_padding), "ScaledDotProductAttention::SetMaskMode");
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

// ---- Dropout -------------------------------------------------------------------------------------------------------

// Where the numbers stand in the generator's sequence, as tensors that autograd keeps. On the CPU, but on the device
// while a graph is captured: there each replay has its own.
struct Seeds {
  Tensor seed, offset;

  // For no dropout.
  Seeds() : seed(at::empty({}, at::kLong)), offset(at::empty({}, at::kLong)) {
    *seed.mutable_data_ptr<int64_t>() = 0;
    *offset.mutable_data_ptr<int64_t>() = 0;
  }
  Seeds(Tensor seed, Tensor offset) : seed(std::move(seed)), offset(std::move(offset)) {}

  static Seeds drawn(const Tensor& like, int64_t count) {
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

  void give_to(Attention& op) const {
    // The third argument tells numbers from addresses.
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

 private:
  // target = *source + increment, on the device.
  static void copy_number(const Tensor& target, int64_t* source, uint64_t increment) {
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
};

Tensor empty_scores(const Tensor& query, const Tensor& key, at::ScalarType dtype) {
  return at::empty({query.size(0), query.size(1), query.size(2), key.size(2)}, query.options().dtype(dtype));
}

// As the query lies, with the dimension of the value.
Tensor empty_result(const Tensor& query, const Tensor& value) {
  if (query.size(3) == value.size(3)) {
    return at::empty_like(query);
  }
  const bool heads_inside = query.stride(1) < query.stride(2);
  return heads_inside
      ? at::empty({query.size(0), query.size(2), query.size(1), value.size(3)}, query.options()).transpose(1, 2)
      : at::empty({query.size(0), query.size(1), query.size(2), value.size(3)}, query.options());
}

// ---- The operators -------------------------------------------------------------------------------------------------

// What a forward pass writes. keep and weights may be undefined.
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
          on.handle(), out, logsumexp, describe(q), describe(k), describe(v), mask.described, keep, on.workspace()),
      "ScaledDotProductAttention::RunFlash", {&q, &k, &v});
}

void run_math(
    const Attention& op, const Forward& to, const Tensor& q, const Tensor& k, const Tensor& v, const Mask& mask) {
  const OnDevice on(q);
  dnn::Tensor out = describe(to.out);
  dnn::Tensor weights = describe(to.weights);
  dnn::Tensor keep = describe(to.keep);
  check(
      op.RunMath(
          on.handle(), out, weights, describe(q), describe(k), describe(v), mask.described, keep, on.workspace()),
      "ScaledDotProductAttention::RunMath", {&q, &k, &v});
}

using Results = std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;

Results attention(
    const Tensor& query, const Tensor& key, const Tensor& value, const Optional& attn_bias, double dropout_p,
    bool is_causal, bool /*return_debug_mask*/, std::optional<double> scale) {
  const Tensor q = with_rows(query);
  const Tensor k = with_rows(key);
  const Tensor v = with_rows(value);
  const Mask mask(attn_bias, q, k);
  Attention op = attention_of(q, k, v, mask, dropout_p, is_causal, scale);
  Forward to;
  to.out = empty_result(q, v);
  to.logsumexp = at::empty({q.size(0), q.size(1), q.size(2)}, q.options().dtype(at::kFloat));
  Seeds seeds;
  if (dropout_p > 0) {
    to.keep = empty_scores(q, k, at::kBool);
    seeds = Seeds::drawn(q, to.keep.numel());
    seeds.give_to(op);
  }
  if (has_flash(q, v)) {
    run_flash(op, to, q, k, v, mask);
  } else {
    to.weights = empty_scores(q, k, q.scalar_type());
    run_math(op, to, q, k, v, mask);
    // RunMath does not tell; the backward pass does without.
    run_fill(to.logsumexp, std::numeric_limits<double>::quiet_NaN());
  }
  return {
      to.out, to.logsumexp, Tensor(), Tensor(), c10::SymInt(q.size(2)), c10::SymInt(k.size(2)), seeds.seed,
      seeds.offset, Tensor()};
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
  const Tensor q = with_rows(query);
  const Tensor k = with_rows(key);
  const Tensor v = with_rows(value);
  const Tensor gradient = with_rows(grad_out);
  const Mask mask(attn_bias, q, k);
  Attention op = attention_of(q, k, v, mask, dropout_p, is_causal, scale);
  const bool flash = has_flash(q, v);
  Forward again;
  if (dropout_p > 0) {
    Seeds(philox_seed, philox_offset).give_to(op);
    again.keep = empty_scores(q, k, at::kBool);
  }
  if (dropout_p > 0 || !flash) {
    again.out = at::empty_like(out);
    if (flash) {
      again.logsumexp = at::empty_like(logsumexp);
      run_flash(op, again, q, k, v, mask);
    } else {
      again.weights = empty_scores(q, k, q.scalar_type());
      run_math(op, again, q, k, v, mask);
    }
  }
  Tensor grad_q = at::empty_like(q);
  Tensor grad_k = at::empty_like(k);
  Tensor grad_v = at::empty_like(v);
  const OnDevice on(q);
  dnn::Tensor dq = describe(grad_q);
  dnn::Tensor dk = describe(grad_k);
  dnn::Tensor dv = describe(grad_v);
  const dnn::Tensor keep = describe(again.keep);
  if (flash) {
    check(
        op.RunFlashBwd(
            on.handle(), dq, dk, dv, describe(gradient), describe(q), describe(k), describe(v), mask.described,
            describe(out), describe(logsumexp), keep, on.workspace()),
        "ScaledDotProductAttention::RunFlashBwd", {&gradient, &q, &k, &v});
  } else {
    const Tensor grad_weights = at::empty_like(again.weights);
    dnn::Tensor of_weights = describe(grad_weights);
    check(
        op.RunMathBwd(
            on.handle(), dq, dk, dv, of_weights, describe(gradient), describe(q), describe(k), describe(v),
            describe(again.weights), keep, on.workspace()),
        "ScaledDotProductAttention::RunMathBwd", {&gradient, &q, &k, &v});
  }
  return {std::move(grad_q), std::move(grad_k), std::move(grad_v), Tensor()};
}

// The gradient of a mask is not muDNN's to give; the choice above leaves such masks to torch.
bool attention_backward_served(
    const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_bias,
    std::array<bool, 4> grad_input_mask, const Tensor& out, const Tensor& logsumexp, const Tensor& /*cum_seq_q*/,
    const Tensor& /*cum_seq_k*/, c10::SymInt /*max_q*/, c10::SymInt /*max_k*/, double dropout_p, bool is_causal,
    const Tensor& philox_seed, const Tensor& philox_offset, std::optional<double> scale) {
  return !grad_input_mask[3] && served(query, key, value, attn_bias, dropout_p, is_causal, scale) &&
      serves<matrix_types>(query, grad_out, out, logsumexp) && grad_out.sizes() == out.sizes() &&
      grad_out.scalar_type() == query.scalar_type() && out.scalar_type() == query.scalar_type() &&
      out.dim() == 4 && out.size(0) == query.size(0) && out.size(1) == query.size(1) &&
      out.size(2) == query.size(2) && out.size(3) == value.size(3) && logsumexp.scalar_type() == at::kFloat &&
      logsumexp.sizes() == query.sizes().slice(0, 3) &&
      (dropout_p == 0 || (philox_seed.defined() && philox_offset.defined()));
}

} // namespace

void declare_attention(OpPack& pack) {
  // scaled_dot_product_attention asks the runtime, and the runtime this operator, so that a policy without muDNN (or
  // with torch's CPU kernels first) settles the choice too.
  pack.impl("aten::_fused_sdp_choice", TORCH_FN(fused_sdp_choice), TORCH_FN(fused_sdp_choice_served));
  pack.impl(
      "aten::_scaled_dot_product_fused_attention_overrideable", TORCH_FN(attention), TORCH_FN(attention_served));
  pack.impl(
      "aten::_scaled_dot_product_fused_attention_overrideable_backward", TORCH_FN(attention_backward),
      TORCH_FN(attention_backward_served));
}

} // namespace musa_ops_mudnn
