// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Shared by all forms of ScaledDotProductAttention: sizes, checks, and the reference implementation.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "support/access.h"
#include "support/call.h"
#include "support/shapes.h"

namespace musa::dnn {

template <>
struct Parameters::Of<ScaledDotProductAttention> {
  explicit Of(const ScaledDotProductAttention& o)
      : padding_mask(o.padding_mask_),
        causal(o.causal_),
        p(o.dropout_),
        scale(o.scale_),
        embed_dim(o.embed_dim_),
        heads(o.heads_),
        batch(o.batch_),
        max_q(o.max_q_),
        max_k(o.max_k_),
        seed(o.seed_),
        offset(o.offset_),
        device_seed(o.device_seed_),
        device_offset(o.device_offset_),
        graph_offset(o.graph_offset_) {}

  bool padding_mask, causal;
  double p, scale;                               // scale 0: 1 / sqrt(dimension of q)
  int64_t embed_dim, heads, batch, max_q, max_k; // 0: not set
  uint64_t seed, offset;
  const uint64_t *device_seed, *device_offset;
  uint64_t graph_offset;
};

namespace attention {

using namespace musa_emulator::dnn;

using Settings = Parameters::Of<ScaledDotProductAttention>;
using Type = Tensor::Type;

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
// Limit for scores in memory at once, if torch's flash attention is not used
constexpr int64_t kScores = int64_t{1} << 26;

struct Sizes {
  int64_t n, heads, kv_heads, q, k, dim, v_dim;
  int64_t total_q, total_k; // rows of packed sequences; q and k are the longest lengths then
  bool narrow;              // HALF or BFLOAT16

  // Workspace of an implementation: one number per row of scores; in the backward pass, for 16-bit types, the gradient
  // of q in FLOAT too.
  size_t forward_bytes() const { return static_cast<size_t>(n * heads * q) * sizeof(float); }
  size_t backward_bytes() const { return forward_bytes() * static_cast<size_t>(1 + (narrow ? dim : 0)); }
};

inline bool has_shape(const Tensor& tensor, std::initializer_list<int64_t> dims) {
  return TensorAccess::present(tensor) && TensorAccess::ndim(tensor) == static_cast<int>(dims.size()) &&
      std::equal(dims.begin(), dims.end(), TensorAccess::dims(tensor));
}

// Whether the setting is not set or equals the value.
inline bool agrees(int64_t setting, int64_t value) { return setting == 0 || setting == value; }

// Checks. They return false if the call fails.

// Reads the sizes of the operands, [N, H, L, E] or packed [T, H, E].
bool measure(
    Call& call, Sizes& sizes, const Settings& settings, const Tensor& q, const Tensor& k, const Tensor& v, bool packed);
bool accept(
    Call& call, const Tensor& tensor, std::initializer_list<Type> types, std::initializer_list<int64_t> dims,
    const char* reason);
bool accept_mask(Call& call, const Settings& settings, const Sizes& sizes, const Tensor& mask, const Tensor& q);
bool accept_keep(Call& call, const Sizes& sizes, const Tensor& keep);
// Checks out or its gradient: the shape of q, with the last dimension of v.
bool accept_out(Call& call, const Sizes& sizes, const Tensor& out, const Tensor& q);
bool accept_gradient(Call& call, const Tensor& of, const Tensor& gradient);

// Aliases of the operands, each with four dimensions [N, H, L, E].
struct Problem {
  at::Tensor q, k, v;
  at::Tensor mask; // broadcasts to the scores, or undefined
  at::Tensor keep; // BOOL, true for elements that dropout keeps; or undefined
  double survivors_scale;
  double scale;
  bool causal;
  int64_t diagonal; // for causal attention: query i sees the keys up to i + diagonal

  int64_t heads() const { return q.size(1); }
  int64_t kv_heads() const { return k.size(1); }
  // Stacks the scores of heads that share keys: [N * kv heads, heads / kv heads * L, ...].
  at::Tensor grouped(const at::Tensor& tensor) const {
    const int64_t group = heads() / kv_heads();
    return tensor.view({tensor.size(0) * kv_heads(), group * tensor.size(2), tensor.size(3)});
  }
};

Problem problem_of(
    const Settings& settings, const Sizes& sizes, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
    const Tensor& keep, bool forward);

struct Gradients {
  at::Tensor q, k, v, weights; // the last may be undefined
};

void copy_to(at::Tensor target, const at::Tensor& source);
at::Tensor as_float(const at::Tensor& tensor);
// Adds the caller's mask and the causal mask to the scores, or to a tensor that broadcasts to them.
void add_masks(const Problem& p, at::Tensor& scores);
// Returns the scaled and masked scores, [N, H, L, S], FLOAT.
at::Tensor scores_of(const Problem& p);
// lse and weights may be undefined. The weights are written before dropout is applied.
void attend(const Problem& p, const at::Tensor& out, const at::Tensor& lse, const at::Tensor& weights);
// `weights` are those before dropout, FLOAT and contiguous.
void attend_backward(
    const Problem& p, const at::Tensor& weights, const at::Tensor& grad_out, const Gradients& gradients);

// Narrows a tensor along `dim`, unless it is undefined or is broadcast along it.
inline at::Tensor part(const at::Tensor& tensor, int64_t dim, int64_t first, int64_t count) {
  return !tensor.defined() || tensor.size(dim) == 1 ? tensor : tensor.narrow(dim, first, count);
}

// Calls function(problem, of) for parts of the batch, such that the scores of a part fit into memory. of(tensor)
// returns the same part of another tensor.
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

} // namespace attention
} // namespace musa::dnn
