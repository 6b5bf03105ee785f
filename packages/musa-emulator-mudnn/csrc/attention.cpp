// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// ScaledDotProductAttention: its settings, and RunMath. attention_flash.cpp has RunFlash and RunFlashVarlen.
#include "attention.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ScalarOps.h>
#include <ATen/ops/_softmax_backward_data_cpu_dispatch.h>
#include <ATen/ops/_softmax_cpu_dispatch.h>
#include <ATen/ops/add_cpu_dispatch.h>
#include <ATen/ops/amax_cpu_dispatch.h>
#include <ATen/ops/bmm_cpu_dispatch.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/eq_cpu_dispatch.h>
#include <ATen/ops/fill_cpu_dispatch.h>
#include <ATen/ops/logical_not_cpu_dispatch.h>
#include <ATen/ops/logsumexp_native.h>
#include <ATen/ops/masked_fill_cpu_dispatch.h>
#include <ATen/ops/mul_cpu_dispatch.h>
#include <ATen/ops/triu_cpu_dispatch.h>

#include <cmath>

#include "support/alias.h"
#include "support/draw.h"

namespace musa::dnn {
namespace attention {

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
  sizes = packed ? Sizes{settings.batch, a[1], b[1], a[0], b[0], a[2], TensorAccess::dims(v)[2], a[0], b[0], false}
                 : Sizes{a[0], a[1], b[1], a[2], b[2], a[3], TensorAccess::dims(v)[3], 0, 0, false};
  sizes.narrow = has_type(q, {Type::HALF, Type::BFLOAT16});
  return call.require(
             has_type(q, {Type::HALF, Type::BFLOAT16, Type::FLOAT}), Status::NOT_SUPPORTED,
             "q is not HALF, BFLOAT16 or FLOAT") &&
      call.require(
          packed ? has_shape(k, {sizes.k, sizes.kv_heads, sizes.dim}) &&
                  has_shape(v, {sizes.k, sizes.kv_heads, sizes.v_dim})
                 : has_shape(k, {sizes.n, sizes.kv_heads, sizes.k, sizes.dim}) &&
                  has_shape(v, {sizes.n, sizes.kv_heads, sizes.k, sizes.v_dim}),
          Status::INVALID_PARAMETER, "the shapes of q, k and v do not match") &&
      call.require(
          sizes.heads % sizes.kv_heads == 0, Status::INVALID_PARAMETER,
          "the number of heads of q is not a multiple of that of k") &&
      call.require(
          agrees(settings.heads, sizes.heads) && agrees(settings.embed_dim, sizes.heads * sizes.v_dim) &&
              agrees(settings.batch, sizes.n),
          Status::INVALID_PARAMETER, "the operands do not match SetHeadsNum, SetEmbedDim and SetBatchSize");
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
      accept(
          call, keep, {Type::BOOL}, {s.n, s.heads, s.q, s.k},
          "the dropout mask is not BOOL with one element per score");
}

bool accept_out(Call& call, const Sizes& s, const Tensor& out, const Tensor& q) {
  const char* const reason = "the shape or type of out or its gradient does not match q and v";
  return s.total_q > 0 ? accept(call, out, {TensorAccess::type(q)}, {s.total_q, s.heads, s.v_dim}, reason)
                       : accept(call, out, {TensorAccess::type(q)}, {s.n, s.heads, s.q, s.v_dim}, reason);
}

bool accept_gradient(Call& call, const Tensor& of, const Tensor& gradient) {
  return call.require(
      TensorAccess::present(gradient) && same_shape(gradient, of) && has_type(gradient, {TensorAccess::type(of)}),
      Status::INVALID_PARAMETER, "a gradient differs from its operand in shape or type");
}

void copy_to(at::Tensor target, const at::Tensor& source) { at::native::copy_(target, source); }

at::Tensor as_float(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kFloat && tensor.is_contiguous()) {
    return tensor;
  }
  at::Tensor result = new_tensor(tensor.sizes(), at::kFloat);
  at::native::copy_(result, tensor);
  return result;
}

namespace {

at::Tensor number(double value) { return at::native::wrapped_scalar_tensor(value); }

at::Tensor flat(const at::Tensor& tensor) {
  return as_float(tensor).view({tensor.size(0) * tensor.size(1), tensor.size(2), tensor.size(3)});
}

at::Tensor negated(const at::Tensor& mask) {
  at::Tensor result = new_tensor(mask.sizes(), at::kBool);
  return ops::logical_not_out(result, mask);
}

} // namespace

void add_masks(const Problem& p, at::Tensor& scores) {
  if (p.mask.defined() && p.mask.scalar_type() == at::kBool) {
    ops::masked_fill_(scores, negated(p.mask), at::Scalar(kMinusInfinity));
  } else if (p.mask.defined()) {
    ops::add_(scores, p.mask, 1);
  }
  if (p.causal) {
    at::Tensor hidden = new_tensor({p.q.size(2), p.k.size(2)}, at::kBool);
    ops::fill_(hidden, 1);
    ops::masked_fill_(scores, ops::triu_(hidden, p.diagonal + 1), at::Scalar(kMinusInfinity));
  }
}

at::Tensor scores_of(const Problem& p) {
  at::Tensor scores = ops::bmm(p.grouped(as_float(p.q)), flat(p.k).transpose(1, 2));
  ops::mul_(scores, number(p.scale));
  scores = scores.view({p.q.size(0), p.heads(), p.q.size(2), p.k.size(2)});
  add_masks(p, scores);
  return scores;
}

namespace {

at::Tensor drop(const Problem& p, at::Tensor weights) {
  if (p.keep.defined()) {
    ops::masked_fill_(weights, negated(p.keep), at::Scalar(0));
    ops::mul_(weights, number(p.survivors_scale));
  }
  return weights;
}

} // namespace

void attend(const Problem& p, const at::Tensor& out, const at::Tensor& lse, const at::Tensor& weights) {
  const at::Tensor scores = scores_of(p);
  if (lse.defined()) {
    copy_to(lse, at::native::logsumexp(scores, {-1}));
  }
  at::Tensor shares = ops::_softmax(scores, -1, /*half_to_float=*/false);
  if (p.causal || p.mask.defined()) {
    // A query without visible keys gets weights of 0; torch's softmax returns NaN.
    ops::masked_fill_(
        shares, ops::eq(ops::amax(scores, {-1}, /*keepdim=*/true), at::Scalar(kMinusInfinity)), at::Scalar(0));
  }
  if (weights.defined()) {
    copy_to(weights, shares);
  }
  copy_to(out, ops::bmm(p.grouped(drop(p, shares)), flat(p.v)).view(out.sizes()));
}

void attend_backward(
    const Problem& p, const at::Tensor& weights, const at::Tensor& grad_out, const Gradients& gradients) {
  const at::Tensor gradient = p.grouped(as_float(grad_out));
  at::Tensor dropped = weights;
  if (p.keep.defined()) {
    dropped = new_tensor(weights.sizes(), at::kFloat);
    copy_to(dropped, weights);
    drop(p, dropped);
  }
  copy_to(gradients.v, ops::bmm(p.grouped(dropped).transpose(1, 2), gradient).view(gradients.v.sizes()));
  at::Tensor of_weights = drop(p, ops::bmm(gradient, flat(p.v).transpose(1, 2)).view(weights.sizes()));
  if (gradients.weights.defined()) {
    copy_to(gradients.weights, of_weights);
  }
  at::Tensor of_scores = ops::_softmax_backward_data(of_weights, weights, -1, at::kFloat);
  ops::mul_(of_scores, number(p.scale));
  const at::Tensor rows = p.grouped(of_scores);
  copy_to(gradients.q, ops::bmm(rows, flat(p.k)).view(gradients.q.sizes()));
  copy_to(gradients.k, ops::bmm(rows.transpose(1, 2), p.grouped(as_float(p.q))).view(gradients.k.sizes()));
}

namespace {

// Returns the mask with four dimensions.
at::Tensor alias_mask(const Settings& settings, const Tensor& mask) {
  at::Tensor result = alias(mask);
  return !result.defined() || result.dim() == 4 ? result
      : settings.padding_mask                   ? result.unsqueeze(1).unsqueeze(1)
      : result.dim() == 2                       ? result.unsqueeze(0).unsqueeze(0)
                                                : result.unsqueeze(0);
}

// Returns the dropout mask, undefined if nothing is dropped. The forward pass draws it from seed and offset, into the
// caller's mask if there is one. The backward pass reads that mask, or draws the same numbers again.
at::Tensor keep_of(const Settings& settings, const Sizes& sizes, const Tensor& mask, bool forward) {
  at::Tensor given = alias(mask);
  if (settings.p == 0 && (!forward || !given.defined())) {
    return {};
  }
  if (!forward && given.defined()) {
    return given;
  }
  const bool direct = given.defined() && TensorAccess::contiguous(mask);
  at::Tensor keep = direct ? given : at::Tensor(new_tensor({sizes.n, sizes.heads, sizes.q, sizes.k}, at::kBool));
  draw_keep_mask(
      keep, settings.p, {settings.device_seed != nullptr ? 0 : settings.seed, settings.device_seed},
      {settings.device_offset != nullptr ? settings.graph_offset : settings.offset, settings.device_offset});
  if (given.defined() && !direct) {
    at::native::copy_(given, keep);
  }
  return settings.p == 0 ? at::Tensor() : keep;
}

} // namespace

Problem problem_of(
    const Settings& settings, const Sizes& sizes, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
    const Tensor& keep, bool forward) {
  const at::Tensor survivors = keep_of(settings, sizes, keep, forward);
  const double survivors_scale = settings.p < 1 ? 1 / (1 - settings.p) : 0;
  const double scale = settings.scale != 0 ? settings.scale : 1 / std::sqrt(static_cast<double>(sizes.dim));
  return {alias(q), alias(k),        alias(v),      alias_mask(settings, mask), survivors, survivors_scale,
          scale,    settings.causal, /*diagonal=*/0};
}

} // namespace attention

namespace {

using namespace attention;

bool accept_weights(Call& call, const Sizes& s, const Tensor& weights, const Tensor& q) {
  return accept(
      call, weights, {Type::FLOAT, TensorAccess::type(q)}, {s.n, s.heads, s.q, s.k},
      "the attention weights are not [N, H, L, S], FLOAT or of the type of q");
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

Status ScaledDotProductAttention::SetComputeMode(ComputeMode mode) { return store(mode_, mode); }

Status ScaledDotProductAttention::SetEmbedDim(int dim) { return store(embed_dim_, dim, dim >= 0); }

Status ScaledDotProductAttention::SetHeadsNum(int heads) { return store(heads_, heads, heads >= 0); }

Status ScaledDotProductAttention::SetBatchSize(int batch) { return store(batch_, batch, batch >= 0); }

Status ScaledDotProductAttention::SetMaxSeqlenQ(int length) { return store(max_q_, length, length >= 0); }

Status ScaledDotProductAttention::SetMaxSeqlenK(int length) { return store(max_k_, length, length >= 0); }

Status ScaledDotProductAttention::SetMaskMode(bool is_padding_mask) { return store(padding_mask_, is_padding_mask); }

Status ScaledDotProductAttention::SetCausal(bool causal) { return store(causal_, causal); }

Status ScaledDotProductAttention::SetDropoutP(double p) { return store(dropout_, p, p >= 0 && p <= 1); }

Status ScaledDotProductAttention::SetScale(double scale) { return store(scale_, scale, std::isfinite(scale)); }

Status ScaledDotProductAttention::SetTraining(bool training) { return store(training_, training); }

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

Status ScaledDotProductAttention::SetKeyFormat(bool key_format) { return store(key_format_, key_format); }

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
        if (!measure(call, sizes, settings, q, k, v, false) || !accept_gradient(call, q, dq) ||
            !accept_gradient(call, k, dk) || !accept_gradient(call, v, dv) || !accept_out(call, sizes, grad_out, q) ||
            !accept_weights(call, sizes, weights, q) || !accept_weights(call, sizes, grad_weights, q) ||
            !accept_keep(call, sizes, dropout_mask)) {
          return call.status();
        }
        return call.enqueue(
            workspace, sizes.backward_bytes(),
            [settings, sizes, dq = dq, dk = dk, dv = dv, grad_weights = grad_weights, grad_out = grad_out, q = q, k = k,
             v = v, weights = weights, keep = dropout_mask] {
              // Masked scores have weight 0, so the mask is not needed.
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

} // namespace musa::dnn
