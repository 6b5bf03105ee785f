// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Norms, rotary embedding and gated activations.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAGuard.h>
#include <c10/musa/MUSAStream.h>

#include "checks.h"
#include "operators.h"

namespace musa_ops_serving {
namespace {

musaStream_t stream() { return c10::musa::getCurrentMUSAStream().stream(); }

// Empty and contiguous, of the shape of a tensor.
at::Tensor empty_as(const at::Tensor& tensor) { return at::empty(tensor.sizes(), tensor.options()); }

// The tensor as [tokens, heads, size] without a copy, for results.
at::Tensor writable_heads(const char* op, const char* name, const at::Tensor& tensor) {
  TORCH_CHECK(
      tensor.stride(-1) == 1 && (tensor.dim() <= 3 || tensor.is_contiguous()), op, ": expected ", name,
      " with a contiguous last dimension, and contiguous if it has more than 3, because it is changed in place; got ",
      "strides ", tensor.strides(), " for shape ", tensor.sizes(), ".\nFix: ", name, ".contiguous()");
  return as_heads(tensor);
}

Dtype check_norm(const char* op, const at::Tensor& input, const at::Tensor* residual, const at::Tensor& weight) {
  const Dtype dtype = check_alike(op, {{"input", input}, {"weight", weight}});
  TORCH_CHECK(input.dim() > 0, op, ": expected an input of at least one dimension, got a number");
  check_sizes(op, {"weight", weight}, {input.size(-1)}, "the last dimension of input");
  if (residual != nullptr) {
    check_alike(op, {{"input", input}, {"residual", *residual}});
    check_sizes(op, {"residual", *residual}, input.sizes(), "as input");
  }
  check_int32(op, "the size of a row", input.size(-1));
  return dtype;
}

// The tensors are [tokens, heads, size] with a contiguous last dimension. Undefined without a residual.
void normalize(
    const at::Tensor& input, const at::Tensor& residual, const at::Tensor& weight, const at::Tensor& out,
    const at::Tensor& residual_out, double epsilon, Dtype dtype) {
  const at::Tensor weights = weight.contiguous();
  RmsNorm norm{};
  norm.input = heads_of(input);
  norm.out = heads_of(out);
  norm.aligned = is_aligned(input) && is_aligned(out) && is_aligned(weights);
  if (residual.defined()) {
    norm.residual = heads_of(residual);
    norm.residual_out = heads_of(residual_out);
    norm.aligned = norm.aligned && is_aligned(residual) && is_aligned(residual_out);
  }
  norm.weight = weights.const_data_ptr();
  norm.tokens = input.size(0);
  norm.heads = static_cast<int>(input.size(1));
  norm.size = static_cast<int>(input.size(2));
  norm.epsilon = static_cast<float>(epsilon);
  rms_norm_rows(norm, dtype, stream());
  C10_MUSA_KERNEL_LAUNCH_CHECK();
}

at::Tensor activate(const char* op, const at::Tensor& input, Activation activation) {
  const Dtype dtype = check_floating(op, {"input", input});
  TORCH_CHECK(
      input.dim() > 0 && input.size(-1) % 2 == 0, op,
      ": expected an input whose last dimension has an even size, gates and values, got ", input.sizes());
  const int64_t size = input.size(-1) / 2;
  check_int32(op, "the size of a row", size);
  at::DimVector sizes(input.sizes());
  sizes.back() = size;
  at::Tensor out = at::empty(sizes, input.options());
  if (out.numel() == 0) {
    return out;
  }
  const c10::musa::MUSAGuard guard(input.device());
  const at::Tensor rows = readable(input.dim() == 2 ? input : input.reshape({-1, 2 * size}), /*aligned=*/false);
  Gated gated{};
  gated.input = rows.const_data_ptr();
  gated.out = out.mutable_data_ptr();
  gated.rows = rows.size(0);
  gated.row_stride = rows.stride(0);
  gated.size = static_cast<int>(size);
  gated.aligned = size % 8 == 0 && is_aligned(rows) && is_aligned(out);
  activate_and_multiply(gated, activation, dtype, stream());
  C10_MUSA_KERNEL_LAUNCH_CHECK();
  return out;
}

} // namespace

at::Tensor rms_norm(const at::Tensor& input, const at::Tensor& weight, double epsilon) {
  const Dtype dtype = check_norm("rms_norm", input, nullptr, weight);
  at::Tensor out = empty_as(input);
  if (out.numel() > 0) {
    const c10::musa::MUSAGuard guard(input.device());
    normalize(readable(as_heads(input), false), {}, weight, as_heads(out), {}, epsilon, dtype);
  }
  return out;
}

std::tuple<at::Tensor, at::Tensor> add_rms_norm(
    const at::Tensor& input, const at::Tensor& residual, const at::Tensor& weight, double epsilon) {
  const Dtype dtype = check_norm("add_rms_norm", input, &residual, weight);
  at::Tensor out = empty_as(input), sum = empty_as(input);
  if (out.numel() > 0) {
    const c10::musa::MUSAGuard guard(input.device());
    normalize(
        readable(as_heads(input), false), readable(as_heads(residual), false), weight, as_heads(out), as_heads(sum),
        epsilon, dtype);
  }
  return {out, sum};
}

void add_rms_norm_(at::Tensor& input, at::Tensor& residual, const at::Tensor& weight, double epsilon) {
  const char* const op = "add_rms_norm_";
  const Dtype dtype = check_norm(op, input, &residual, weight);
  if (input.numel() == 0) {
    return;
  }
  TORCH_CHECK(
      !input.is_same(residual), op, ": input and residual are the same tensor, but each gets another result.",
      "\nFix: torch.ops.musa_serving.add_rms_norm");
  const c10::musa::MUSAGuard guard(input.device());
  const at::Tensor rows = writable_heads(op, "input", input), sums = writable_heads(op, "residual", residual);
  normalize(rows, sums, weight, rows, sums, epsilon, dtype);
}

at::Tensor silu_and_mul(const at::Tensor& input) { return activate("silu_and_mul", input, Activation::kSilu); }

at::Tensor gelu_and_mul(const at::Tensor& input, std::string_view approximate) {
  TORCH_CHECK(
      approximate == "none" || approximate == "tanh",
      "gelu_and_mul: expected approximate of \"none\" or \"tanh\", got \"", approximate, "\"");
  return activate("gelu_and_mul", input, approximate == "none" ? Activation::kGelu : Activation::kGeluTanh);
}

void rotary_embedding(
    const at::Tensor& positions, at::Tensor& query, const std::optional<at::Tensor>& key, int64_t head_size,
    const at::Tensor& cos_sin_cache, bool neox) {
  const char* const op = "rotary_embedding";
  const Dtype dtype = check_floating(op, {"query", query});
  const c10::Device device = query.device();
  check_kind(op, {"positions", positions}, at::kLong, 1, device);
  check_device(op, {"cos_sin_cache", cos_sin_cache}, device);
  check_dims(op, {"cos_sin_cache", cos_sin_cache}, 2, "[positions, rotated elements]");
  TORCH_CHECK(
      cos_sin_cache.scalar_type() == query.scalar_type() || cos_sin_cache.scalar_type() == at::kFloat, op,
      ": expected cos_sin_cache of dtype float32 or that of query, ", query.scalar_type(), ", got ",
      cos_sin_cache.scalar_type());
  const int64_t tokens = positions.size(0), rotated = cos_sin_cache.size(1);
  TORCH_CHECK(
      head_size > 0 && rotated > 0 && rotated % 2 == 0 && rotated <= head_size, op,
      ": expected cos_sin_cache to have an even number of columns that is not larger than head_size ", head_size,
      ", got ", cos_sin_cache.sizes());
  // [tokens, heads, head_size] without a copy; [tokens, heads * head_size] is another view of it.
  const auto heads = [&](const char* name, const at::Tensor& tensor) {
    const bool flat = tensor.dim() == 2 && tensor.size(1) % head_size == 0;
    TORCH_CHECK(
        tensor.size(0) == tokens && (flat || (tensor.dim() == 3 && tensor.size(2) == head_size)) &&
            (tensor.numel() == 0 || tensor.stride(-1) == 1),
        op, ": expected ", name, " of shape [", tokens, ", heads, ", head_size, "] or [", tokens, ", heads * ",
        head_size, "] with a contiguous last dimension, because it is changed in place; got shape ", tensor.sizes(),
        " and strides ", tensor.strides());
    return flat ? tensor.unflatten(1, {tensor.size(1) / head_size, head_size}) : tensor;
  };
  TORCH_CHECK(query.dim() > 0, op, ": expected a query of 2 or 3 dimensions, got a number");
  const at::Tensor queries = heads("query", query);
  at::Tensor keys;
  if (key.has_value() && key->defined()) {
    check_alike(op, {{"query", query}, {"key", *key}});
    TORCH_CHECK(key->dim() > 0, op, ": expected a key of 2 or 3 dimensions, got a number");
    keys = heads("key", *key);
  }
  if (tokens == 0) {
    return;
  }
  const c10::musa::MUSAGuard guard(device);
  const at::Tensor cache = cos_sin_cache.contiguous(), places = positions.contiguous();
  Rotary rotary{};
  rotary.query = heads_of(queries);
  rotary.query_heads = static_cast<int>(queries.size(1));
  rotary.aligned = rotated % 16 == 0 && is_aligned(queries) && is_aligned(cache);
  if (keys.defined()) {
    rotary.key = heads_of(keys);
    rotary.key_heads = static_cast<int>(keys.size(1));
    rotary.aligned = rotary.aligned && is_aligned(keys);
  }
  rotary.positions = places.const_data_ptr<int64_t>();
  rotary.cache = cache.const_data_ptr();
  rotary.tokens = tokens;
  rotary.cached_positions = cache.size(0);
  rotary.rotated = static_cast<int>(rotated);
  rotary.neox = neox;
  rotary.float_cache = cos_sin_cache.scalar_type() == at::kFloat;
  rotate(rotary, dtype, stream());
  C10_MUSA_KERNEL_LAUNCH_CHECK();
}

} // namespace musa_ops_serving
