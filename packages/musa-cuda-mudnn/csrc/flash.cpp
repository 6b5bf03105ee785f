// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <mudnn_backend/flash.h>
#include <mudnn_backend/lending.h>

#include <ATen/SDPBackend.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "support/results.h"

namespace musa_emulator::dnn {
namespace {

constexpr size_t kForward = 200; // 201 if causal; see results.h
constexpr size_t kBackward = 202;

// torch's flash attention supports HALF and BFLOAT16. q, k and v must have the same head size, a multiple of 8 up to
// 256.
bool serves(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const int64_t dim = q.size(-1);
  return at::isReducedFloatingType(q.scalar_type()) && dim == k.size(-1) && dim == v.size(-1) && dim % 8 == 0 &&
      dim <= 256;
}

// Returns keys or values with one copy for each head of q.
at::Tensor for_each_head(const at::Tensor& tensor, const at::Tensor& q) {
  return tensor.size(1) == q.size(1) ? tensor : tensor.repeat_interleave(q.size(1) / tensor.size(1), 1);
}

// Writes the sums of the gradients of copies that for_each_head made.
void add_copies(at::Tensor gradient, const at::Tensor& of_copies) {
  at::sum_out(gradient, of_copies.unflatten(1, {gradient.size(1), -1}), {2});
}

constexpr int64_t kLeastForCudnn = 64; // rows of a sequence; flash attention handles shorter ones

// Whether torch.cuda computes this attention with cuDNN. The tensors do not show whether a gradient will be computed;
// for gradients cuDNN supports neither larger heads nor sequences of one row, so both are excluded here.
bool chooses_cudnn(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal, double scale) {
  constexpr int64_t longest_head = 128;
  return q.size(-1) <= longest_head && q.size(2) >= kLeastForCudnn && k.size(2) >= kLeastForCudnn &&
      at::_fused_sdp_choice(q, k, v, {}, /*dropout_p=*/0.0, causal, scale) ==
      static_cast<int64_t>(at::SDPBackend::cudnn_attention);
}

// Whether `out` has the dimension order that torch's functions choose for this query. cuDNN graphs are cached by the
// strides of q, k and v alone, so another order of `out` would reuse a wrong graph.
bool ordered_as_torchs(const at::Tensor& out, const at::Tensor& q) {
  return out.strides() == at::infer_dense_strides(q.sizes(), q.strides());
}

} // namespace

bool device_flash(
    const at::Tensor& out, const at::Tensor& lse, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    bool causal, double scale) {
  if (!serves(q, k, v)) {
    return false;
  }
  if (q.size(1) != k.size(1) && q.size(2) >= kLeastForCudnn) {
    // Flash attention shares keys among heads; cuDNN, which is faster for many queries, gets copies.
    return device_flash(out, lse, q, for_each_head(k, q), for_each_head(v, q), causal, scale);
  }
  const bool by_cudnn = chooses_cudnn(q, k, v, causal, scale);
  const auto make = [&]() -> std::array<at::Tensor, 2> {
    if (by_cudnn) {
      const auto result = at::_scaled_dot_product_cudnn_attention(
          q, k, v, {}, /*compute_log_sumexp=*/true, /*dropout_p=*/0.0, causal, false, scale);
      return {std::get<0>(result), std::get<1>(result).view(lse.sizes())};
    }
    const auto result = at::_scaled_dot_product_flash_attention(q, k, v, /*dropout_p=*/0.0, causal, false, scale);
    return {std::get<0>(result), std::get<1>(result).narrow(2, 0, lse.size(2))};
  };
  const std::array results{out, lse};
  if (overlaps(out, {&q, &k, &v})) {
    copy_results(results, make());
  } else {
    copy_results(results, make_all_in(results, key_of(kForward + causal, {&out, &lse, &q, &k, &v}), make));
  }
  return true;
}

bool device_flash_backward(
    const at::Tensor& grad_q, const at::Tensor& grad_k, const at::Tensor& grad_v, const at::Tensor& grad_out,
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& out, const at::Tensor& lse,
    bool causal, double scale) {
  if (!serves(q, k, v)) {
    return false;
  }
  if (q.size(1) != k.size(1)) {
    const at::Tensor every_k = for_each_head(k, q), every_v = for_each_head(v, q);
    const at::Tensor grad_every_k = at::empty_like(every_k), grad_every_v = at::empty_like(every_v);
    device_flash_backward(grad_q, grad_every_k, grad_every_v, grad_out, q, every_k, every_v, out, lse, causal, scale);
    add_copies(grad_k, grad_every_k);
    add_copies(grad_v, grad_every_v);
    return true;
  }
  const bool by_cudnn = ordered_as_torchs(out, q) && grad_out.strides() == out.strides() && lse.is_contiguous() &&
      chooses_cudnn(q, k, v, causal, scale);
  const at::Tensor unused = new_tensor({2}, at::kLong); // the dropout state, unused without dropout
  const auto make = [&]() -> std::array<at::Tensor, 3> {
    const auto gradients = by_cudnn
        ? at::_scaled_dot_product_cudnn_attention_backward(
              grad_out, q, k, v, out, lse.unsqueeze(-1), unused, unused, {}, {}, {}, q.size(2), k.size(2),
              /*dropout_p=*/0.0, causal, scale)
        : at::_scaled_dot_product_flash_attention_backward(
              grad_out, q, k, v, out, lse, {}, {}, q.size(2), k.size(2), /*dropout_p=*/0.0, causal, unused, unused,
              scale);
    return {std::get<0>(gradients), std::get<1>(gradients), std::get<2>(gradients)};
  };
  const std::array results{grad_q, grad_k, grad_v};
  const auto overwrites = [&](const at::Tensor& result) {
    return overlaps(result, {&grad_out, &q, &k, &v, &out, &lse});
  };
  if (std::any_of(results.begin(), results.end(), overwrites)) {
    copy_results(results, make());
  } else {
    const size_t key = key_of(kBackward + causal, {&grad_q, &grad_k, &grad_v, &grad_out, &q, &k, &v, &out});
    copy_results(results, make_all_in(results, key, make));
  }
  return true;
}

} // namespace musa_emulator::dnn
