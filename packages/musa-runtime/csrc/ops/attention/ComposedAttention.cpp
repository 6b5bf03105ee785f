// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/musa/MUSACompat.h>
#include <host_copy/fallback.h>
#include <musa_runtime/attention.h>
#include <musa_runtime/op_pack.h>

#include <cmath>
#include <limits>

// Attention composed of operators on the device, for operands that no pack supports: doubles in discrete memory, and packed
// sequences with windows, pages or positional biases. It stores all scores of a call at once.

namespace musa_runtime {
namespace {

using at::Tensor;
using Optional = std::optional<Tensor>;

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
constexpr int64_t kBlock = int64_t{1} << 22; // elements of the largest temporary of product()

// A composition computes in the dtype of its operands, also inside autocast.
struct WithoutAutocast : c10::impl::ExcludeDispatchKeyGuard {
  WithoutAutocast() : ExcludeDispatchKeyGuard(c10::autocast_dispatch_keyset) {}
};

Tensor widened(const Tensor& tensor) { return tensor.scalar_type() == at::kDouble ? tensor : tensor.to(at::kFloat); }

// a [..., M, K] times b [..., K, N].
Tensor product(const Tensor& a, const Tensor& b) {
  const bool has_kernel = a.scalar_type() != at::kDouble && a.numel() > 0 && b.numel() > 0;
  if (has_kernel || musa_runtime::has_host()) {
    return at::matmul(a, b);
  }
  // muDNN refuses matrices of doubles and empty ones: sums of elementwise products, in blocks of rows.
  const Tensor columns = b.transpose(-2, -1).unsqueeze(-3);
  const int64_t of_batch =
      c10::multiply_integers(at::infer_size(a.sizes().slice(0, a.dim() - 2), b.sizes().slice(0, b.dim() - 2)));
  const int64_t of_row = std::max<int64_t>(of_batch * b.size(-1) * b.size(-2), 1);
  const int64_t rows = std::max<int64_t>(kBlock / of_row, 1);
  std::vector<Tensor> blocks;
  int64_t first = 0;
  do {
    const int64_t count = std::min(rows, a.size(-2) - first);
    blocks.push_back((a.narrow(-2, first, count).unsqueeze(-2) * columns).sum(-1));
    first += count;
  } while (first < a.size(-2));
  return blocks.size() == 1 ? blocks.front() : at::cat(blocks, -2);
}

// ---- Attention by its definition -----------------------------------------------------------------------------------

// Floats or doubles [..., heads, L, E]. Leading dimensions broadcast.
struct Problem {
  Tensor q, k, v;
  Tensor mask; // BOOL, true for the scores that are kept, or additive; broadcasts to the scores; may be undefined
  double dropout_p;
  double scale;

  Problem(const Tensor& query, const Tensor& key, const Tensor& value, double p, std::optional<double> factor)
      : q(widened(query)),
        k(per_query_head(widened(key))),
        v(per_query_head(widened(value))),
        dropout_p(p),
        scale(factor.has_value() ? *factor : 1 / std::sqrt(static_cast<double>(query.size(-1)))) {}

  // Repeats keys or values that several heads of the query share, once for each head.
  Tensor per_query_head(const Tensor& tensor) const {
    if (!is_shared(tensor)) {
      return tensor;
    }
    std::vector<int64_t> sizes = tensor.sizes().vec();
    sizes.insert(sizes.end() - 2, q.size(-3) / tensor.size(-3));
    return tensor.unsqueeze(-3).expand(sizes).flatten(-4, -3);
  }
  // The sum of gradients over the heads and the dimensions along which `like` was repeated.
  Tensor reduced(const Tensor& gradient, const Tensor& like) const {
    Tensor result = gradient;
    if (is_shared(like)) {
      std::vector<int64_t> sizes = gradient.sizes().vec();
      sizes[sizes.size() - 3] = like.size(-3);
      sizes.insert(sizes.end() - 2, q.size(-3) / like.size(-3));
      result = result.reshape(sizes).sum(-3);
    }
    return at::sum_to(result, like.sizes()).to(like.scalar_type());
  }

 private:
  bool is_shared(const Tensor& tensor) const {
    return q.dim() > 2 && tensor.dim() > 2 && tensor.size(-3) > 1 && tensor.size(-3) < q.size(-3) &&
        q.size(-3) % tensor.size(-3) == 0;
  }
};

void add_causality(Problem& problem) {
  const Tensor visible =
      at::ones({problem.q.size(-2), problem.k.size(-2)}, problem.q.options().dtype(at::kBool)).tril();
  problem.mask = !problem.mask.defined()        ? visible
      : problem.mask.scalar_type() == at::kBool ? problem.mask.logical_and(visible)
                                                : problem.mask.masked_fill(visible.logical_not(), kMinusInfinity);
}

struct Weights {
  Tensor values;    // before dropout
  Tensor logsumexp; // of the scores
};

Weights weights_of(const Problem& problem) {
  Tensor scores = product(problem.q, problem.k.transpose(-2, -1)) * problem.scale;
  if (problem.mask.defined()) {
    scores = problem.mask.scalar_type() == at::kBool ? scores.masked_fill(problem.mask.logical_not(), kMinusInfinity)
                                                     : scores + problem.mask;
  }
  Tensor logsumexp = at::logsumexp(scores, {-1});
  Tensor values = at::_softmax(scores, -1, /*half_to_float=*/false);
  if (problem.mask.defined()) {
    // Softmax gives NaN for a query without keys; its output is 0.
    values = values.masked_fill(logsumexp.eq(kMinusInfinity).unsqueeze(-1), 0);
  }
  return {std::move(values), std::move(logsumexp)};
}

Tensor dropped(const Tensor& values, const Tensor& keep, double p) {
  return keep.defined() ? values * keep * (p < 1 ? 1 / (1 - p) : 0.0) : values;
}

// The state that the backward pass needs of a random forward pass: dropout's mask. Without dropout, a number, as in other
// implementations.
Tensor draw(const Tensor& values, double p) {
  return p > 0 ? at::empty_like(values, values.options().dtype(at::kBool)).bernoulli_(1 - p)
               : at::zeros({}, at::TensorOptions(at::kLong));
}

Tensor keep_of(const Tensor& drawn, double p) { return p > 0 ? drawn : Tensor(); }

struct ComposedForward {
  Tensor out, logsumexp, drawn;
};

ComposedForward attend(const Problem& problem) {
  const Weights weights = weights_of(problem);
  Tensor drawn = draw(weights.values, problem.dropout_p);
  Tensor out = product(dropped(weights.values, keep_of(drawn, problem.dropout_p), problem.dropout_p), problem.v);
  return {std::move(out), weights.logsumexp.to(at::kFloat), std::move(drawn)};
}

struct Gradients {
  Tensor q, k, v, mask;
};

// Gradients of the problem's own operands; the caller reduces those of repeated keys and values.
Gradients attend_backward(const Problem& problem, const Tensor& gradient, const Tensor& drawn) {
  const Tensor keep = keep_of(drawn, problem.dropout_p);
  const Tensor weights = weights_of(problem).values;
  Gradients result;
  result.v = product(dropped(weights, keep, problem.dropout_p).transpose(-2, -1), gradient);
  const Tensor of_weights = dropped(product(gradient, problem.v.transpose(-2, -1)), keep, problem.dropout_p);
  result.mask = at::_softmax_backward_data(of_weights, weights, -1, weights.scalar_type());
  const Tensor of_scores = result.mask * problem.scale;
  result.q = product(of_scores, problem.k);
  result.k = product(of_scores.transpose(-2, -1), problem.q);
  return result;
}

// ---- _scaled_dot_product_fused_attention_overrideable --------------------------------------------------------------

Problem dense_problem(
    const Tensor& query, const Tensor& key, const Tensor& value, const Optional& attn_bias, double dropout_p,
    bool is_causal, std::optional<double> scale) {
  Problem problem(query, key, value, dropout_p, scale);
  if (attn_bias.has_value() && attn_bias->defined()) {
    problem.mask = attn_bias->scalar_type() == at::kBool ? *attn_bias : attn_bias->to(problem.q.scalar_type());
  }
  if (is_causal) {
    add_causality(problem);
  }
  return problem;
}

using DenseResults = std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;

DenseResults attention(
    const Tensor& query, const Tensor& key, const Tensor& value, const Optional& attn_bias, double dropout_p,
    bool is_causal, bool return_debug_mask, std::optional<double> scale) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !return_debug_mask, "Attention on a musa device returns no debug mask. Fix: pass return_debug_mask=False");
  const WithoutAutocast guard;
  const ComposedForward forward = attend(dense_problem(query, key, value, attn_bias, dropout_p, is_causal, scale));
  Tensor out = forward.out.dim() == query.dim() ? empty_attention_output(query, forward.out.sizes()).copy_(forward.out)
                                                : forward.out.to(query.scalar_type());
  return {std::move(out), forward.logsumexp, Tensor(),      Tensor(),
          query.size(-2), key.size(-2),      forward.drawn, at::zeros({}, at::TensorOptions(at::kLong)),
          Tensor()};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> attention_backward(
    const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_bias,
    std::array<bool, 4> grad_input_mask, const Tensor& /*out*/, const Tensor& /*logsumexp*/,
    const Tensor& /*cum_seq_q*/, const Tensor& /*cum_seq_k*/, c10::SymInt /*max_q*/, c10::SymInt /*max_k*/,
    double dropout_p, bool is_causal, const Tensor& philox_seed, const Tensor& /*philox_offset*/,
    std::optional<double> scale) {
  TORCH_CHECK(
      dropout_p == 0 || philox_seed.dim() >= 2,
      "The gradient of attention with dropout needs the mask that this implementation's forward pass returned, and was "
      "given seeds of another one. Likely causes: the mask requires a gradient; the policy of operators changed "
      "between the two passes. Fix: call scaled_dot_product_attention with sdpa_kernel(SDPBackend.MATH)");
  const WithoutAutocast guard;
  const Problem problem = dense_problem(query, key, value, attn_bias, dropout_p, is_causal, scale);
  Gradients gradients = attend_backward(problem, widened(grad_out), philox_seed);
  return {
      problem.reduced(gradients.q, query), problem.reduced(gradients.k, key), problem.reduced(gradients.v, value),
      grad_input_mask[3] ? problem.reduced(gradients.mask, attn_bias) : Tensor()};
}

// ---- _flash_attention_forward --------------------------------------------------------------------------------------

// Queries, or keys and values, of packed sequences [T, H, E], of pages, or of a dense batch [B, L, H, E].
class Rows {
 public:
  Rows(const Optional& offsets, c10::SymInt longest, const Tensor& like) {
    if (offsets.has_value() && offsets->defined()) {
      TORCH_CHECK(like.dim() == 3, "packed sequences have the shape (T, heads, head size), not ", like.sizes());
      packed_.emplace(*offsets, longest.expect_int(), like.size(0));
      lengths = packed_->lengths();
      longest_ = longest.expect_int();
    } else {
      TORCH_CHECK(like.dim() == 4, "a batch has the shape (B, L, heads, head size), not ", like.sizes());
      longest_ = like.size(1);
    }
  }
  // Pages [pages, rows of a page, H, E]. Row r of a sequence is row r % size of page block_table[r / size].
  Rows(const Tensor& block_table, c10::SymInt longest, const Tensor& used, const Tensor& like)
      : lengths(used.to(at::kLong)), longest_(longest.expect_int()) {
    const Tensor positions = at::arange(longest_, lengths.options());
    const int64_t size = like.size(1);
    const Tensor page = block_table.to(at::kLong).index_select(1, positions.floor_divide(size));
    slots_ = (page * size + positions.remainder(size)).clamp(0, like.size(0) * size - 1).flatten();
  }

  // Converts to [B, H, longest, E].
  Tensor spread(const Tensor& tensor) const {
    if (slots_.defined()) {
      return tensor.flatten(0, 1)
          .index_select(0, slots_)
          .view({lengths.size(0), longest_, tensor.size(2), tensor.size(3)})
          .transpose(1, 2);
    }
    return (packed_.has_value() ? packed_->pad(tensor) : tensor).transpose(1, 2);
  }
  // The inverse of spread().
  Tensor gathered(const Tensor& tensor) const {
    const Tensor rows = tensor.transpose(1, 2);
    return packed_.has_value() ? packed_->pack(rows) : rows;
  }
  // Converts [B, H, longest] to [H, T] for packed sequences; otherwise returns it unchanged.
  Tensor gathered_sums(const Tensor& tensor) const {
    return packed_.has_value() ? packed_->pack(tensor.transpose(1, 2)).t().contiguous() : tensor;
  }
  int64_t longest() const { return longest_; }

  Tensor lengths; // INT64 [B], undefined if all are longest()

 private:
  int64_t longest_;
  std::optional<PackedSequences> packed_;
  Tensor slots_;
};

struct Window {
  int64_t left, right; // -1: unlimited

  Window(std::optional<c10::SymInt> before, std::optional<c10::SymInt> after, bool is_causal)
      : left(before.has_value() ? before->expect_int() : -1),
        right(
            is_causal               ? 0
                : after.has_value() ? after->expect_int()
                                    : -1) {}
};

// The scores that are kept. Positions are aligned at the end of a sequence: its last query has the position of its last
// key.
Tensor mask_of(
    const Rows& queries, const Rows& keys, const Window& window, const Optional& slopes, const Tensor& like) {
  const auto options = like.options().dtype(at::kLong);
  const Tensor column = at::arange(keys.longest(), options);
  const auto per_sequence = [&](const Rows& rows) {
    return rows.lengths.defined() ? rows.lengths.view({-1, 1, 1, 1})
                                  : at::zeros({1, 1, 1, 1}, options) + rows.longest();
  };
  Tensor mask;
  const auto restrict_to = [&](const Tensor& condition) {
    mask = mask.defined() ? mask.logical_and(condition) : condition;
  };
  if (keys.lengths.defined()) {
    restrict_to(column < per_sequence(keys));
  }
  const bool biased = slopes.has_value() && slopes->defined();
  if (window.left < 0 && window.right < 0 && !biased) {
    return mask;
  }
  const Tensor row = at::arange(queries.longest(), options).unsqueeze(1);
  const Tensor distance = column - row - (per_sequence(keys) - per_sequence(queries));
  if (window.left >= 0) {
    restrict_to(distance >= -window.left);
  }
  if (window.right >= 0) {
    restrict_to(distance <= window.right);
  }
  if (!biased) {
    return mask;
  }
  const Tensor bias = distance.abs() * slopes->view({slopes->dim() == 2 ? slopes->size(0) : 1, -1, 1, 1}).neg();
  return mask.defined() ? bias.masked_fill(mask.logical_not(), kMinusInfinity) : bias;
}

Rows rows_of_keys(
    const Tensor& key, const Optional& offsets, c10::SymInt longest, const Optional& used, const Optional& pages) {
  const bool limited = used.has_value() && used->defined();
  if (pages.has_value() && pages->defined()) {
    TORCH_CHECK(limited, "block_table needs seqused_k, the number of valid keys of each sequence");
    return Rows(*pages, std::move(longest), *used, key);
  }
  Rows rows(offsets, std::move(longest), key);
  if (limited) {
    rows.lengths = used->to(at::kLong);
  }
  return rows;
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> flash_attention(
    const Tensor& query, const Tensor& key, const Tensor& value, const Optional& cum_seq_q, const Optional& cum_seq_k,
    c10::SymInt max_q, c10::SymInt max_k, double dropout_p, bool is_causal, bool return_debug_mask,
    std::optional<double> scale, std::optional<c10::SymInt> window_left, std::optional<c10::SymInt> window_right,
    const Optional& seqused_k,
    const Optional& alibi_slopes
        MUSA_SINCE_TORCH_2_12(, const Optional& block_table, std::optional<int64_t> /*num_splits*/)) {
  MUSA_BEFORE_TORCH_2_12(const Optional block_table;)
  TORCH_CHECK_NOT_IMPLEMENTED(
      !return_debug_mask, "Attention on a musa device returns no debug mask. Fix: pass return_debug_mask=False");
  const WithoutAutocast guard;
  const Rows queries(cum_seq_q, std::move(max_q), query);
  const Rows keys = rows_of_keys(key, cum_seq_k, std::move(max_k), seqused_k, block_table);
  Problem problem(queries.spread(query), keys.spread(key), keys.spread(value), dropout_p, scale);
  problem.mask = mask_of(queries, keys, Window(window_left, window_right, is_causal), alibi_slopes, query);
  const ComposedForward forward = attend(problem);
  return {
      queries.gathered(forward.out).to(query.scalar_type()).contiguous(), queries.gathered_sums(forward.logsumexp),
      forward.drawn, at::zeros({}, at::TensorOptions(at::kLong)), at::empty({0}, query.options())};
}

std::tuple<Tensor, Tensor, Tensor> flash_attention_backward(
    const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& /*out*/,
    const Tensor& /*logsumexp*/, const Tensor& cum_seq_q, const Tensor& cum_seq_k, c10::SymInt max_q, c10::SymInt max_k,
    double dropout_p, bool is_causal, const Tensor& rng_state, const Tensor& /*unused*/, std::optional<double> scale,
    std::optional<c10::SymInt> window_left, std::optional<c10::SymInt> window_right) {
  TORCH_CHECK(
      dropout_p == 0 || rng_state.dim() == 4,
      "The gradient of flash attention with dropout needs the rng_state that its forward pass returned");
  const WithoutAutocast guard;
  const Rows queries(cum_seq_q, std::move(max_q), query);
  const Rows keys(cum_seq_k, std::move(max_k), key);
  const Tensor k = keys.spread(key);
  const Tensor v = keys.spread(value);
  Problem problem(queries.spread(query), k, v, dropout_p, scale);
  problem.mask = mask_of(queries, keys, Window(window_left, window_right, is_causal), {}, query);
  const Gradients gradients = attend_backward(problem, widened(queries.spread(grad_out)), rng_state);
  const auto as = [](const Tensor& gradient, const Tensor& like) {
    return gradient.to(like.scalar_type()).contiguous();
  };
  return {
      as(queries.gathered(gradients.q), query), as(keys.gathered(problem.reduced(gradients.k, k)), key),
      as(keys.gathered(problem.reduced(gradients.v, v)), value)};
}

#if __has_include(<ATen/ops/_flash_attention_forward_no_dropout_inplace_ops.h>)
// For torch.nn.attention.varlen.varlen_attn_out. Returns the logarithms of the sums.
Tensor flash_attention_into(
    Tensor& out, const Tensor& query, const Tensor& key, const Tensor& value, const Optional& cum_seq_q,
    const Optional& cum_seq_k, c10::SymInt max_q, c10::SymInt max_k, double dropout_p, bool is_causal,
    bool return_debug_mask, std::optional<double> scale, std::optional<c10::SymInt> window_left,
    std::optional<c10::SymInt> window_right, const Optional& seqused_k, const Optional& alibi_slopes,
    const Optional& block_table, std::optional<int64_t> num_splits) {
  TORCH_CHECK(dropout_p == 0, "flash attention into a given output has no dropout, but dropout_p is ", dropout_p);
  auto results = at::_flash_attention_forward_symint(
      query, key, value, cum_seq_q, cum_seq_k, std::move(max_q), std::move(max_k), dropout_p, is_causal,
      return_debug_mask, scale, std::move(window_left), std::move(window_right), seqused_k, alibi_slopes, block_table,
      num_splits);
  out.copy_(std::get<0>(results));
  return std::get<1>(std::move(results));
}
#endif

MUSA_OP_PACK(runtime, pack) {
  pack.impl("aten::_scaled_dot_product_fused_attention_overrideable", TORCH_FN(attention));
  pack.impl("aten::_scaled_dot_product_fused_attention_overrideable_backward", TORCH_FN(attention_backward));
  pack.impl("aten::_flash_attention_forward", TORCH_FN(flash_attention));
  pack.impl("aten::_flash_attention_backward", TORCH_FN(flash_attention_backward));
#if __has_include(<ATen/ops/_flash_attention_forward_no_dropout_inplace_ops.h>)
  pack.impl("aten::_flash_attention_forward_no_dropout_inplace", TORCH_FN(flash_attention_into));
#endif
}

} // namespace
} // namespace musa_runtime
