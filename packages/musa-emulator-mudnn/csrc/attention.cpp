// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// ScaledDotProductAttention.
#include <ATen/EmptyTensor.h>
#include <ATen/ScalarOps.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward_cpu_dispatch.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_cpu_dispatch.h>
#include <ATen/ops/_softmax_backward_data_cpu_dispatch.h>
#include <ATen/ops/_softmax_cpu_dispatch.h>
#include <ATen/ops/add_cpu_dispatch.h>
#include <ATen/ops/amax_cpu_dispatch.h>
#include <ATen/ops/bmm_cpu_dispatch.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/eq_cpu_dispatch.h>
#include <ATen/ops/exp_cpu_dispatch.h>
#include <ATen/ops/fill_cpu_dispatch.h>
#include <ATen/ops/logical_not_cpu_dispatch.h>
#include <ATen/ops/logsumexp_native.h>
#include <ATen/ops/masked_fill_cpu_dispatch.h>
#include <ATen/ops/mul_cpu_dispatch.h>
#include <ATen/ops/sub_cpu_dispatch.h>
#include <ATen/ops/sum_cpu_dispatch.h>
#include <ATen/ops/triu_cpu_dispatch.h>
#include <ATen/ops/zero_cpu_dispatch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

#include "engine/device.h"
#include "support/alias.h"
#include "support/call.h"
#include "support/shapes.h"

namespace musa_emulator::dnn {

void draw_keep_mask(bool* keep, int64_t count, double p, uint64_t seed, uint64_t offset); // dropout.cpp

} // namespace musa_emulator::dnn

namespace musa::dnn {

// The friend of classes that only hold parameters. What it reads of one stands beside the operations that take it.
struct Parameters {
  template <class Class>
  struct Of;
};

template <>
struct Parameters::Of<ScaledDotProductAttention> {
  explicit Of(const ScaledDotProductAttention& o)
      : padding_mask(o.padding_mask_), causal(o.causal_), p(o.dropout_), scale(o.scale_), embed_dim(o.embed_dim_),
        heads(o.heads_), batch(o.batch_), max_q(o.max_q_), max_k(o.max_k_), seed(o.seed_), offset(o.offset_),
        device_seed(o.device_seed_), device_offset(o.device_offset_), graph_offset(o.graph_offset_) {}

  bool padding_mask, causal;
  double p, scale;                               // scale 0: by the dimension of q
  int64_t embed_dim, heads, batch, max_q, max_k; // 0: not set
  uint64_t seed, offset;
  const uint64_t *device_seed, *device_offset;
  uint64_t graph_offset;
};

namespace {

using namespace musa_emulator::dnn;

using Settings = Parameters::Of<ScaledDotProductAttention>;
using Type = Tensor::Type;

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
constexpr int64_t kScores = int64_t{1} << 26; // held at a time, where torch's flash attention does not serve

struct Sizes {
  int64_t n, heads, kv_heads, q, k, dim, v_dim;
  int64_t total_q, total_k; // rows of packed sequences; q and k are the longest then

  // What an implementation keeps aside: a number for each row of scores; backward, the gradient of q in FLOAT too.
  size_t forward_bytes() const { return static_cast<size_t>(n * heads * q) * sizeof(float); }
  size_t backward_bytes() const { return forward_bytes() * static_cast<size_t>(1 + dim); }
};

bool has_shape(const Tensor& tensor, std::initializer_list<int64_t> dims) {
  return TensorAccess::present(tensor) && TensorAccess::ndim(tensor) == static_cast<int>(dims.size()) &&
      std::equal(dims.begin(), dims.end(), TensorAccess::dims(tensor));
}

bool agrees(int64_t setting, int64_t value) {
  return setting == 0 || setting == value;
}

// The operands' sizes, [N, H, L, E] or packed [T, H, E]. False after a refusal.
bool measure(
    Call& call, Sizes& sizes, const Settings& settings, const Tensor& q, const Tensor& k, const Tensor& v,
    bool packed) {
  const int ndim = packed ? 3 : 4;
  for (const Tensor* tensor : {&q, &k, &v}) {
    if (!call.require(
            TensorAccess::present(*tensor) && TensorAccess::ndim(*tensor) == ndim, Status::INVALID_PARAMETER,
            "q, k or v is absent or has another number of dimensions") ||
        !call.require(
            has_type(*tensor, {TensorAccess::type(q)}), Status::INVALID_PARAMETER, "q, k and v differ in type")) {
      return false;
    }
  }
  const int64_t* const a = TensorAccess::dims(q);
  const int64_t* const b = TensorAccess::dims(k);
  sizes = packed ? Sizes{settings.batch, a[1], b[1], a[0], b[0], a[2], TensorAccess::dims(v)[2], a[0], b[0]}
                 : Sizes{a[0], a[1], b[1], a[2], b[2], a[3], TensorAccess::dims(v)[3], 0, 0};
  return call.require(
             has_type(q, {Type::HALF, Type::BFLOAT16, Type::FLOAT}), Status::NOT_SUPPORTED,
             "q is not HALF, BFLOAT16 or FLOAT") &&
      call.require(
          packed ? has_shape(k, {sizes.k, sizes.kv_heads, sizes.dim}) &&
                  has_shape(v, {sizes.k, sizes.kv_heads, sizes.v_dim})
                 : has_shape(k, {sizes.n, sizes.kv_heads, sizes.k, sizes.dim}) &&
                  has_shape(v, {sizes.n, sizes.kv_heads, sizes.k, sizes.v_dim}),
          Status::INVALID_PARAMETER, "the shapes of q, k and v do not fit together") &&
      call.require(
          sizes.heads % sizes.kv_heads == 0, Status::INVALID_PARAMETER,
          "the heads of q are no multiple of those of k") &&
      call.require(
          agrees(settings.heads, sizes.heads) && agrees(settings.embed_dim, sizes.heads * sizes.v_dim) &&
              agrees(settings.batch, sizes.n),
          Status::INVALID_PARAMETER, "the operands are not what SetHeadsNum, SetEmbedDim and SetBatchSize say");
}

bool fits_flash(Call& call, const Handle& handle, const Sizes& sizes) {
  const musa_emulator::Device* const device = musa_emulator::find_device(HandleAccess::device(handle));
  const int arch = device != nullptr ? device->properties.major * 10 + device->properties.minor : 0;
  const int64_t larger = std::max(sizes.dim, sizes.v_dim);
  return call.require(arch >= 22, Status::NOT_SUPPORTED, "flash attention needs mp_22 or later") &&
      call.require(
          arch >= 31 ? larger <= 160 || (sizes.dim == 192 && sizes.v_dim == 128) : larger <= 128, Status::NOT_SUPPORTED,
          "flash attention does not take heads of this dimension");
}

bool accept_mask(Call& call, const Settings& settings, const Sizes& s, const Tensor& mask, const Tensor& q) {
  if (!TensorAccess::present(mask)) {
    return true;
  }
  return call.require(
             has_type(mask, {Type::BOOL, Type::FLOAT, TensorAccess::type(q)}), Status::INVALID_PARAMETER,
             "the mask is neither BOOL nor FLOAT nor of the type of q") &&
      call.require(
          settings.padding_mask ? has_shape(mask, {s.n, s.k})
                                : has_shape(mask, {s.q, s.k}) || has_shape(mask, {s.heads, s.q, s.k}) ||
                  has_shape(mask, {s.n, s.heads, s.q, s.k}),
          Status::INVALID_PARAMETER, "the mask has a shape that SetMaskMode does not allow");
}

bool accept(
    Call& call, const Tensor& tensor, std::initializer_list<Type> types, std::initializer_list<int64_t> dims,
    const char* reason) {
  return call.require(has_type(tensor, types) && has_shape(tensor, dims), Status::INVALID_PARAMETER, reason);
}

bool accept_keep(Call& call, const Sizes& s, const Tensor& keep) {
  return !TensorAccess::present(keep) ||
      accept(call, keep, {Type::BOOL}, {s.n, s.heads, s.q, s.k}, "the dropout mask is not BOOL, one for each score");
}

// out, or its gradient: as q, with the dimension of v.
bool accept_out(Call& call, const Sizes& s, const Tensor& out, const Tensor& q) {
  const char* const reason = "out or its gradient has another shape or type than q and v give";
  return s.total_q > 0 ? accept(call, out, {TensorAccess::type(q)}, {s.total_q, s.heads, s.v_dim}, reason)
                       : accept(call, out, {TensorAccess::type(q)}, {s.n, s.heads, s.q, s.v_dim}, reason);
}

bool accept_lse(Call& call, const Sizes& s, const Tensor& lse) {
  return accept(call, lse, {Type::FLOAT}, {s.n, s.heads, s.q}, "the logarithms of the sums are not FLOAT [N, H, L]");
}

bool accept_weights(Call& call, const Sizes& s, const Tensor& weights, const Tensor& q) {
  return accept(
      call, weights, {Type::FLOAT, TensorAccess::type(q)}, {s.n, s.heads, s.q, s.k},
      "the attention weights are not [N, H, L, S], FLOAT or of the type of q");
}

bool accept_gradient(Call& call, const Tensor& of, const Tensor& gradient) {
  return call.require(
      TensorAccess::present(gradient) && same_shape(gradient, of) && has_type(gradient, {TensorAccess::type(of)}),
      Status::INVALID_PARAMETER, "a gradient has another shape or type than what it is of");
}

// Aliases, each with four dimensions [N, H, L, E].
struct Problem {
  at::Tensor q, k, v;
  at::Tensor mask; // broadcasts to the scores, or undefined
  at::Tensor keep; // BOOL, what dropout leaves, or undefined
  double survivors_scale;
  double scale;
  bool causal;
  int64_t diagonal; // causal: a query sees the keys up to its own index plus this

  int64_t heads() const { return q.size(1); }
  int64_t kv_heads() const { return k.size(1); }
  // The scores of heads that share keys stand below one another: [N * kv heads, heads / kv heads * L, ...].
  at::Tensor grouped(const at::Tensor& tensor) const {
    const int64_t group = heads() / kv_heads();
    return tensor.view({tensor.size(0) * kv_heads(), group * tensor.size(2), tensor.size(3)});
  }
};

at::Tensor number(double value) {
  return at::native::wrapped_scalar_tensor(value);
}

void copy_to(at::Tensor target, const at::Tensor& source) {
  at::native::copy_(target, source);
}

at::Tensor as_float(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kFloat && tensor.is_contiguous()) {
    return tensor;
  }
  at::Tensor result = at::detail::empty_cpu(tensor.sizes(), at::kFloat);
  at::native::copy_(result, tensor);
  return result;
}

at::Tensor flat(const at::Tensor& tensor) {
  return as_float(tensor).view({tensor.size(0) * tensor.size(1), tensor.size(2), tensor.size(3)});
}

at::Tensor negated(const at::Tensor& mask) {
  at::Tensor result = at::detail::empty_cpu(mask.sizes(), at::kBool);
  return at::cpu::logical_not_out(result, mask);
}

// The caller's mask and causality, into scores or what broadcasts to them.
void add_masks(const Problem& p, at::Tensor& scores) {
  if (p.mask.defined() && p.mask.scalar_type() == at::kBool) {
    at::cpu::masked_fill_(scores, negated(p.mask), at::Scalar(kMinusInfinity));
  } else if (p.mask.defined()) {
    at::cpu::add_(scores, p.mask, 1);
  }
  if (p.causal) {
    at::Tensor hidden = at::detail::empty_cpu({p.q.size(2), p.k.size(2)}, at::kBool);
    at::cpu::fill_(hidden, 1);
    at::cpu::masked_fill_(scores, at::cpu::triu_(hidden, p.diagonal + 1), at::Scalar(kMinusInfinity));
  }
}

// [N, H, L, S], FLOAT: scaled and masked.
at::Tensor scores_of(const Problem& p) {
  at::Tensor scores = at::cpu::bmm(p.grouped(as_float(p.q)), flat(p.k).transpose(1, 2));
  at::cpu::mul_(scores, number(p.scale));
  scores = scores.view({p.q.size(0), p.heads(), p.q.size(2), p.k.size(2)});
  add_masks(p, scores);
  return scores;
}

at::Tensor drop(const Problem& p, at::Tensor weights) {
  if (p.keep.defined()) {
    at::cpu::masked_fill_(weights, negated(p.keep), at::Scalar(0));
    at::cpu::mul_(weights, number(p.survivors_scale));
  }
  return weights;
}

// lse and weights may be undefined. The weights are those before dropout.
void attend(const Problem& p, const at::Tensor& out, const at::Tensor& lse, const at::Tensor& weights) {
  const at::Tensor scores = scores_of(p);
  if (lse.defined()) {
    copy_to(lse, at::native::logsumexp(scores, {-1}));
  }
  at::Tensor shares = at::cpu::_softmax(scores, -1, /*half_to_float=*/false);
  if (p.causal || p.mask.defined()) {
    // A query that sees no key attends to nothing; torch's softmax says NaN.
    at::cpu::masked_fill_(
        shares, at::cpu::eq(at::cpu::amax(scores, {-1}, /*keepdim=*/true), at::Scalar(kMinusInfinity)), at::Scalar(0));
  }
  if (weights.defined()) {
    copy_to(weights, shares);
  }
  copy_to(out, at::cpu::bmm(p.grouped(drop(p, shares)), flat(p.v)).view(out.sizes()));
}

struct Gradients {
  at::Tensor q, k, v, weights; // the last may be undefined
};

// From the weights before dropout, FLOAT and contiguous.
void attend_backward(
    const Problem& p, const at::Tensor& weights, const at::Tensor& grad_out, const Gradients& gradients) {
  const at::Tensor gradient = p.grouped(as_float(grad_out));
  at::Tensor dropped = weights;
  if (p.keep.defined()) {
    dropped = at::detail::empty_cpu(weights.sizes(), at::kFloat);
    copy_to(dropped, weights);
    drop(p, dropped);
  }
  copy_to(gradients.v, at::cpu::bmm(p.grouped(dropped).transpose(1, 2), gradient).view(gradients.v.sizes()));
  at::Tensor of_weights = drop(p, at::cpu::bmm(gradient, flat(p.v).transpose(1, 2)).view(weights.sizes()));
  if (gradients.weights.defined()) {
    copy_to(gradients.weights, of_weights);
  }
  at::Tensor of_scores = at::cpu::_softmax_backward_data(of_weights, weights, -1, at::kFloat);
  at::cpu::mul_(of_scores, number(p.scale));
  const at::Tensor rows = p.grouped(of_scores);
  copy_to(gradients.q, at::cpu::bmm(rows, flat(p.k)).view(gradients.q.sizes()));
  copy_to(gradients.k, at::cpu::bmm(rows.transpose(1, 2), p.grouped(as_float(p.q))).view(gradients.k.sizes()));
}

// Of a tensor that may be undefined, or broadcast along the dimension.
at::Tensor part(const at::Tensor& tensor, int64_t dim, int64_t first, int64_t count) {
  return !tensor.defined() || tensor.size(dim) == 1 ? tensor : tensor.narrow(dim, first, count);
}

// Calls function(problem, of) for parts of the batch whose scores are few enough to be held.
// of(tensor) is the same part of another tensor.
template <class Function>
void in_parts(const Problem& p, Function&& function) {
  const int64_t n = p.q.size(0);
  const int64_t at_once = std::clamp<int64_t>(kScores / (p.heads() * p.q.size(2) * p.k.size(2)), 1, n);
  for (int64_t first = 0; first < n; first += at_once) {
    const int64_t count = std::min(at_once, n - first);
    const auto of = [&](const at::Tensor& tensor) {
      return tensor.defined() ? tensor.narrow(0, first, count) : tensor;
    };
    Problem some = p;
    some.q = of(p.q);
    some.k = of(p.k);
    some.v = of(p.v);
    some.keep = of(p.keep);
    some.mask = part(p.mask, 0, first, count);
    function(some, of);
  }
}

// Torch's flash attention: no dropout, all heads of one dimension, its own alignment of the causal mask.
bool suits_torch(const Problem& p) {
  return !p.keep.defined() && p.q.size(3) == p.v.size(3) && (!p.causal || p.diagonal == 0);
}

struct Bias {
  std::optional<at::Tensor> values; // FLOAT, all of [N, H, L, S]
  at::Tensor blind;                 // true for queries that see no key
  bool causal;                      // what torch has to add
};

// As torch takes it. With a mask, causality is made part of it, so that the queries that see nothing are known.
Bias bias_of(const Problem& p) {
  if (!p.mask.defined()) {
    return {std::nullopt, {}, p.causal};
  }
  at::Tensor values =
      at::detail::empty_cpu({p.mask.size(0), p.mask.size(1), p.q.size(2), p.k.size(2)}, at::kFloat);
  at::cpu::zero_(values);
  add_masks(p, values);
  const at::Tensor blind = at::cpu::eq(at::cpu::amax(values, {-1}), at::Scalar(kMinusInfinity));
  return {values.expand({p.q.size(0), p.heads(), p.q.size(2), p.k.size(2)}), blind, false};
}

// Torch's flash attention reads the last dimension as if its stride were 1.
at::Tensor dense(const at::Tensor& tensor) {
  return tensor.stride(-1) == 1 ? tensor : tensor.contiguous();
}

// Keys or values once for each head of q.
at::Tensor for_each_head(const Problem& p, const at::Tensor& tensor) {
  if (p.heads() == p.kv_heads()) {
    return dense(tensor);
  }
  const auto sizes = tensor.sizes();
  return tensor.unsqueeze(2)
      .expand({sizes[0], sizes[1], p.heads() / p.kv_heads(), sizes[2], sizes[3]})
      .reshape({sizes[0], p.heads(), sizes[2], sizes[3]});
}

void flash(const Problem& p, const at::Tensor& out, const at::Tensor& lse) {
  if (!suits_torch(p)) {
    in_parts(p, [&](const Problem& some, const auto& of) { attend(some, of(out), of(lse), {}); });
    return;
  }
  const Bias bias = bias_of(p);
  auto [result, sums] = at::cpu::_scaled_dot_product_flash_attention_for_cpu(
      dense(p.q), for_each_head(p, p.k), for_each_head(p, p.v), 0, bias.causal, bias.values, p.scale);
  if (bias.blind.defined()) {
    at::cpu::masked_fill_(sums, bias.blind, at::Scalar(kMinusInfinity)); // torch says 0
  }
  copy_to(out, result);
  copy_to(lse, sums);
}

// A gradient for each head of q, summed over the heads that share a key.
void gather_heads(at::Tensor target, const at::Tensor& source) {
  if (source.size(1) == target.size(1)) {
    at::native::copy_(target, source);
    return;
  }
  const auto sizes = target.sizes();
  at::cpu::sum_out(target, source.view({sizes[0], sizes[1], -1, sizes[2], sizes[3]}), at::IntArrayRef{2});
}

void flash_backward(
    const Problem& p, const at::Tensor& grad_out, const at::Tensor& out, const at::Tensor& lse,
    const Gradients& gradients) {
  // Finite for queries that see no key: the exponentials of their scores are 0 all the same.
  at::Tensor sums = at::detail::empty_cpu(lse.sizes(), at::kFloat);
  at::native::copy_(sums, lse);
  at::cpu::masked_fill_(sums, at::cpu::eq(sums, at::Scalar(kMinusInfinity)), at::Scalar(0));
  if (!suits_torch(p)) {
    in_parts(p, [&](const Problem& some, const auto& of) {
      at::Tensor weights = scores_of(some);
      at::cpu::sub_(weights, of(sums).unsqueeze(-1), 1);
      at::cpu::exp_(weights);
      attend_backward(some, weights, of(grad_out), {of(gradients.q), of(gradients.k), of(gradients.v), {}});
    });
    return;
  }
  const Bias bias = bias_of(p);
  const auto [dq, dk, dv] = at::cpu::_scaled_dot_product_flash_attention_for_cpu_backward(
      dense(grad_out), dense(p.q), for_each_head(p, p.k), for_each_head(p, p.v), dense(out), sums, 0, bias.causal,
      bias.values, p.scale);
  copy_to(gradients.q, dq);
  gather_heads(gradients.k, dk);
  gather_heads(gradients.v, dv);
}

// The mask with four dimensions.
at::Tensor alias_mask(const Settings& settings, const Tensor& mask) {
  at::Tensor result = alias(mask);
  return !result.defined() || result.dim() == 4 ? result
      : settings.padding_mask                   ? result.unsqueeze(1).unsqueeze(1)
      : result.dim() == 2                       ? result.unsqueeze(0).unsqueeze(0)
                                                : result.unsqueeze(0);
}

// What dropout leaves: drawn from seed and offset into the caller's mask, if there is one. Backward, that mask is read;
// without one, the same is drawn again. Undefined if nothing is dropped.
at::Tensor keep_of(const Settings& settings, const Sizes& sizes, const Tensor& mask, bool forward) {
  at::Tensor given = alias(mask);
  if (settings.p == 0 && (!forward || !given.defined())) {
    return {};
  }
  if (!forward && given.defined()) {
    return given;
  }
  const bool direct = given.defined() && TensorAccess::contiguous(mask);
  at::Tensor keep =
      direct ? given : at::Tensor(at::detail::empty_cpu({sizes.n, sizes.heads, sizes.q, sizes.k}, at::kBool));
  draw_keep_mask(
      keep.mutable_data_ptr<bool>(), keep.numel(), settings.p,
      settings.device_seed != nullptr ? *settings.device_seed : settings.seed,
      settings.device_offset != nullptr ? *settings.device_offset + settings.graph_offset : settings.offset);
  if (given.defined() && !direct) {
    at::native::copy_(given, keep);
  }
  return settings.p == 0 ? at::Tensor() : keep;
}

Problem problem_of(
    const Settings& settings, const Sizes& sizes, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
    const Tensor& keep, bool forward) {
  const at::Tensor survivors = keep_of(settings, sizes, keep, forward);
  const double survivors_scale = settings.p < 1 ? 1 / (1 - settings.p) : 0;
  const double scale = settings.scale != 0 ? settings.scale : 1 / std::sqrt(static_cast<double>(sizes.dim));
  return {alias(q),        alias(k), alias(v),        alias_mask(settings, mask), survivors,
          survivors_scale, scale,    settings.causal, /*diagonal=*/0};
}

// Completes the sizes by the offsets'.
bool accept_packed(
    Call& call, Sizes& sizes, const Settings& settings, const Tensor& lse, const Tensor& mask, const Tensor& keep,
    const Tensor& offsets_q, const Tensor& offsets_k) {
  for (const Tensor* offsets : {&offsets_q, &offsets_k}) {
    const int64_t count = TensorAccess::elements(offsets_q);
    if (!call.require(
            count >= 2 && has_type(*offsets, {Type::INT32}) && has_shape(*offsets, {count}) &&
                TensorAccess::contiguous(*offsets),
            Status::INVALID_PARAMETER, "the offsets are not contiguous INT32 [B + 1]")) {
      return false;
    }
    sizes.n = count - 1;
  }
  const bool padded = TensorAccess::present(lse) && TensorAccess::ndim(lse) == 3;
  sizes.q = settings.max_q != 0 ? settings.max_q : padded ? TensorAccess::dims(lse)[2] : sizes.total_q;
  sizes.k = settings.max_k != 0 ? settings.max_k : sizes.total_k;
  return call.require(
             agrees(settings.batch, sizes.n), Status::INVALID_PARAMETER,
             "the offsets are not those of as many sequences as SetBatchSize says") &&
      (padded ? accept_lse(call, sizes, lse)
              : accept(
                    call, lse, {Type::FLOAT}, {sizes.heads, sizes.total_q},
                    "the logarithms of the sums are neither FLOAT [B, H, longest q] nor [H, T]")) &&
      call.require(
          (settings.max_q != 0 && settings.max_k != 0) || (settings.p == 0 && !TensorAccess::present(mask)),
          Status::INVALID_PARAMETER, "masks and dropout need SetMaxSeqlenQ and SetMaxSeqlenK") &&
      accept_keep(call, sizes, keep);
}

int64_t checked_length(const int32_t* offsets, int64_t i, int64_t longest, int64_t total) {
  const int64_t length = int64_t{offsets[i + 1]} - offsets[i];
  if (offsets[i] < 0 || length < 0 || length > longest || offsets[i + 1] > total) {
    throw std::runtime_error(
        "sequence " + std::to_string(i) + ", " + std::to_string(length) + " rows, does not lie in the " +
        std::to_string(total) + " rows given, or is longer than " + std::to_string(longest));
  }
  return length;
}

// Rows of a packed tensor as [1, H, L, E].
at::Tensor rows(const at::Tensor& tensor, int64_t first, int64_t count) {
  return tensor.narrow(0, first, count).transpose(0, 1).unsqueeze(0);
}

struct Sequence {
  int64_t index, first_q, first_k, length_q, length_k;
  at::Tensor of_q(const at::Tensor& tensor) const { return rows(tensor, first_q, length_q); }
  at::Tensor of_k(const at::Tensor& tensor) const { return rows(tensor, first_k, length_k); }
  // Of [B, H, longest] or [H, T].
  at::Tensor of_lse(const at::Tensor& lse) const {
    return lse.dim() == 2 ? lse.narrow(1, first_q, length_q).unsqueeze(0)
                          : lse.narrow(0, index, 1).narrow(2, 0, length_q);
  }
  // Of [B or 1, H or 1, longest q or 1, longest k or 1].
  at::Tensor of_scores(const at::Tensor& tensor) const {
    return part(part(part(tensor, 0, index, 1), 2, 0, length_q), 3, 0, length_k);
  }
};

// Calls function(sequence, problem) for each that is not empty. `whole` holds packed q, k and v. Causal: the last query
// of a sequence sees its last key. Surplus keys stand before: those of earlier calls, kept in a cache.
template <class Function>
void for_each_sequence(
    const Sizes& sizes, const Problem& whole, const Tensor& offsets_q, const Tensor& offsets_k, Function&& function) {
  const auto* const q = static_cast<const int32_t*>(TensorAccess::address(offsets_q));
  const auto* const k = static_cast<const int32_t*>(TensorAccess::address(offsets_k));
  for (int64_t i = 0; i < sizes.n; ++i) {
    const Sequence sequence{
        i, q[i], k[i], checked_length(q, i, sizes.q, sizes.total_q), checked_length(k, i, sizes.k, sizes.total_k)};
    if (sequence.length_q == 0 || sequence.length_k == 0) {
      continue;
    }
    Problem problem = whole;
    problem.q = sequence.of_q(whole.q);
    problem.k = sequence.of_k(whole.k);
    problem.v = sequence.of_k(whole.v);
    problem.mask = sequence.of_scores(whole.mask);
    problem.keep = sequence.of_scores(whole.keep);
    problem.diagonal = sequence.length_k - sequence.length_q;
    function(sequence, problem);
  }
}

void fill(at::Tensor tensor, double value) {
  at::cpu::fill_(tensor, at::Scalar(value));
}

template <class Value>
Status store(Value& field, Value value, bool meant = true) {
  if (!meant) {
    return Status::INVALID_PARAMETER;
  }
  field = value;
  return Status::SUCCESS;
}

} // namespace

Status ScaledDotProductAttention::SetComputeMode(ComputeMode mode) {
  return store(mode_, mode);
}

Status ScaledDotProductAttention::SetEmbedDim(int dim) {
  return store(embed_dim_, dim, dim >= 0);
}

Status ScaledDotProductAttention::SetHeadsNum(int heads) {
  return store(heads_, heads, heads >= 0);
}

Status ScaledDotProductAttention::SetBatchSize(int batch) {
  return store(batch_, batch, batch >= 0);
}

Status ScaledDotProductAttention::SetMaxSeqlenQ(int length) {
  return store(max_q_, length, length >= 0);
}

Status ScaledDotProductAttention::SetMaxSeqlenK(int length) {
  return store(max_k_, length, length >= 0);
}

Status ScaledDotProductAttention::SetMaskMode(bool is_padding_mask) {
  return store(padding_mask_, is_padding_mask);
}

Status ScaledDotProductAttention::SetCausal(bool causal) {
  return store(causal_, causal);
}

Status ScaledDotProductAttention::SetDropoutP(double p) {
  return store(dropout_, p, p >= 0 && p <= 1);
}

Status ScaledDotProductAttention::SetScale(double scale) {
  return store(scale_, scale, std::isfinite(scale));
}

Status ScaledDotProductAttention::SetTraining(bool training) {
  return store(training_, training);
}

Status ScaledDotProductAttention::SetSeed(
    uint64_t seed, uint64_t offset, int dropout_mode, const uint64_t* device_seed, const uint64_t* device_offset,
    uint64_t graph_offset) {
  seed_ = seed;
  offset_ = offset;
  dropout_mode_ = dropout_mode;
  device_seed_ = device_seed;
  device_offset_ = device_offset;
  graph_offset_ = graph_offset;
  return Status::SUCCESS;
}

Status ScaledDotProductAttention::SetKeyFormat(bool key_format) {
  return store(key_format_, key_format);
}

Status ScaledDotProductAttention::SetIsDeterministic(bool deterministic) {
  return store(deterministic_, deterministic);
}

Status ScaledDotProductAttention::RunMath(
    Handle& handle, Tensor& out, Tensor& weights, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
    Tensor& dropout_mask, const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::ScaledDotProductAttention::RunMath">(
      handle, {&out, &weights, &q, &k, &v, &mask, &dropout_mask}, [&](Call& call) {
        const Settings settings(*this);
        Sizes sizes{};
        if (!measure(call, sizes, settings, q, k, v, false) || !accept_out(call, sizes, out, q) ||
            !accept_weights(call, sizes, weights, q) || !accept_mask(call, settings, sizes, mask, q) ||
            !accept_keep(call, sizes, dropout_mask)) {
          return call.status();
        }
        return call.enqueue(
            workspace, 2 * sizes.forward_bytes(),
            [settings, sizes, out = out, weights = weights, q = q, k = k, v = v, mask = mask, keep = dropout_mask] {
              const at::Tensor result = alias(out);
              const at::Tensor shares = alias(weights);
              in_parts(
                  problem_of(settings, sizes, q, k, v, mask, keep, true),
                  [&](const Problem& some, const auto& of) { attend(some, of(result), {}, of(shares)); });
            });
      });
}

Status ScaledDotProductAttention::RunMathBwd(
    Handle& handle, Tensor& dq, Tensor& dk, Tensor& dv, Tensor& grad_weights, const Tensor& grad_out, const Tensor& q,
    const Tensor& k, const Tensor& v, const Tensor& weights, const Tensor& dropout_mask,
    const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::ScaledDotProductAttention::RunMathBwd">(
      handle, {&dq, &dk, &dv, &grad_weights, &grad_out, &q, &k, &v, &weights, &dropout_mask}, [&](Call& call) {
        const Settings settings(*this);
        Sizes sizes{};
        if (!measure(call, sizes, settings, q, k, v, false) ||
            !accept_gradient(call, q, dq) || !accept_gradient(call, k, dk) || !accept_gradient(call, v, dv) ||
            !accept_out(call, sizes, grad_out, q) || !accept_weights(call, sizes, weights, q) ||
            !accept_weights(call, sizes, grad_weights, q) || !accept_keep(call, sizes, dropout_mask)) {
          return call.status();
        }
        return call.enqueue(
            workspace, sizes.backward_bytes(),
            [settings, sizes, dq = dq, dk = dk, dv = dv, grad_weights = grad_weights, grad_out = grad_out, q = q, k = k,
             v = v, weights = weights, keep = dropout_mask] {
              // What masks and causality hid has weight 0: no mask is needed.
              const Problem problem = problem_of(settings, sizes, q, k, v, Tensor(), keep, false);
              const at::Tensor gradient = alias(grad_out);
              const at::Tensor shares = alias(weights);
              const Gradients all{alias(dq), alias(dk), alias(dv), alias(grad_weights)};
              in_parts(problem, [&](const Problem& some, const auto& of) {
                attend_backward(
                    some, as_float(of(shares)), of(gradient), {of(all.q), of(all.k), of(all.v), of(all.weights)});
              });
            });
      });
}

Status ScaledDotProductAttention::RunFlash(
    Handle& handle, Tensor& out, Tensor& lse, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
    Tensor& dropout_mask, const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::ScaledDotProductAttention::RunFlash">(
      handle, {&out, &lse, &q, &k, &v, &mask, &dropout_mask}, [&](Call& call) {
        const Settings settings(*this);
        Sizes sizes{};
        if (!measure(call, sizes, settings, q, k, v, false) || !fits_flash(call, handle, sizes) ||
            !accept_out(call, sizes, out, q) || !accept_lse(call, sizes, lse) ||
            !accept_mask(call, settings, sizes, mask, q) || !accept_keep(call, sizes, dropout_mask)) {
          return call.status();
        }
        return call.enqueue(
            workspace, sizes.forward_bytes(),
            [settings, sizes, out = out, lse = lse, q = q, k = k, v = v, mask = mask, keep = dropout_mask] {
              flash(problem_of(settings, sizes, q, k, v, mask, keep, true), alias(out), alias(lse));
            },
            /*optional=*/true);
      });
}

Status ScaledDotProductAttention::RunFlashBwd(
    Handle& handle, Tensor& dq, Tensor& dk, Tensor& dv, const Tensor& grad_out, const Tensor& q, const Tensor& k,
    const Tensor& v, const Tensor& mask, const Tensor& out, const Tensor& lse, const Tensor& dropout_mask,
    const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::ScaledDotProductAttention::RunFlashBwd">(
      handle, {&dq, &dk, &dv, &grad_out, &q, &k, &v, &mask, &out, &lse, &dropout_mask}, [&](Call& call) {
        const Settings settings(*this);
        Sizes sizes{};
        if (!measure(call, sizes, settings, q, k, v, false) || !fits_flash(call, handle, sizes) ||
            !accept_gradient(call, q, dq) || !accept_gradient(call, k, dk) || !accept_gradient(call, v, dv) ||
            !accept_out(call, sizes, grad_out, q) || !accept_out(call, sizes, out, q) ||
            !accept_lse(call, sizes, lse) || !accept_mask(call, settings, sizes, mask, q) ||
            !accept_keep(call, sizes, dropout_mask)) {
          return call.status();
        }
        return call.enqueue(
            workspace, sizes.backward_bytes(),
            [settings, sizes, dq = dq, dk = dk, dv = dv, grad_out = grad_out, q = q, k = k, v = v, mask = mask,
             out = out, lse = lse, keep = dropout_mask] {
              flash_backward(
                  problem_of(settings, sizes, q, k, v, mask, keep, false), alias(grad_out), alias(out), alias(lse),
                  {alias(dq), alias(dk), alias(dv), {}});
            });
      });
}

Status ScaledDotProductAttention::RunFlashVarlen(
    Handle& handle, Tensor& out, Tensor& lse, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
    Tensor& dropout_mask, const Tensor& offsets_q, const Tensor& offsets_k, const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::ScaledDotProductAttention::RunFlashVarlen">(
      handle, {&out, &lse, &q, &k, &v, &mask, &dropout_mask, &offsets_q, &offsets_k}, [&](Call& call) {
        const Settings settings(*this);
        Sizes sizes{};
        if (!measure(call, sizes, settings, q, k, v, true) || !fits_flash(call, handle, sizes) ||
            !accept_out(call, sizes, out, q) ||
            !accept_packed(call, sizes, settings, lse, mask, dropout_mask, offsets_q, offsets_k) ||
            !accept_mask(call, settings, sizes, mask, q)) {
          return call.status();
        }
        return call.enqueue(
            workspace, sizes.forward_bytes(),
            [settings, sizes, out = out, lse = lse, q = q, k = k, v = v, mask = mask, keep = dropout_mask,
             offsets_q = offsets_q, offsets_k = offsets_k] {
              const at::Tensor result = alias(out);
              const at::Tensor sums = alias(lse);
              fill(result, 0); // for queries that see no key, and rows of no sequence
              fill(sums, kMinusInfinity);
              for_each_sequence(
                  sizes, problem_of(settings, sizes, q, k, v, mask, keep, true), offsets_q, offsets_k,
                  [&](const Sequence& of, const Problem& some) { flash(some, of.of_q(result), of.of_lse(sums)); });
            });
      });
}

Status ScaledDotProductAttention::RunFlashVarlenBwd(
    Handle& handle, Tensor& dq, Tensor& dk, Tensor& dv, const Tensor& grad_out, const Tensor& q, const Tensor& k,
    const Tensor& v, const Tensor& mask, const Tensor& out, const Tensor& lse, const Tensor& dropout_mask,
    const Tensor& offsets_q, const Tensor& offsets_k, const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::ScaledDotProductAttention::RunFlashVarlenBwd">(
      handle, {&dq, &dk, &dv, &grad_out, &q, &k, &v, &mask, &out, &lse, &dropout_mask, &offsets_q, &offsets_k},
      [&](Call& call) {
        const Settings settings(*this);
        Sizes sizes{};
        if (!measure(call, sizes, settings, q, k, v, true) || !fits_flash(call, handle, sizes) ||
            !accept_gradient(call, q, dq) || !accept_gradient(call, k, dk) || !accept_gradient(call, v, dv) ||
            !accept_out(call, sizes, grad_out, q) || !accept_out(call, sizes, out, q) ||
            !accept_packed(call, sizes, settings, lse, mask, dropout_mask, offsets_q, offsets_k) ||
            !accept_mask(call, settings, sizes, mask, q)) {
          return call.status();
        }
        return call.enqueue(
            workspace, sizes.backward_bytes(),
            [settings, sizes, dq = dq, dk = dk, dv = dv, grad_out = grad_out, q = q, k = k, v = v, mask = mask,
             out = out, lse = lse, keep = dropout_mask, offsets_q = offsets_q, offsets_k = offsets_k] {
              const at::Tensor gradient = alias(grad_out);
              const at::Tensor result = alias(out);
              const at::Tensor sums = alias(lse);
              const Gradients all{alias(dq), alias(dk), alias(dv), {}};
              for (const at::Tensor& whole : {all.q, all.k, all.v}) {
                fill(whole, 0);
              }
              for_each_sequence(
                  sizes, problem_of(settings, sizes, q, k, v, mask, keep, false), offsets_q, offsets_k,
                  [&](const Sequence& sequence, const Problem& problem) {
                    flash_backward(
                        problem, sequence.of_q(gradient), sequence.of_q(result), sequence.of_lse(sums),
                        {sequence.of_q(all.q), sequence.of_k(all.k), sequence.of_k(all.v), {}});
                  });
            });
      });
}

} // namespace musa::dnn
