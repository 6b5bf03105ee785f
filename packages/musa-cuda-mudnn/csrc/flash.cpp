// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <mudnn_backend/flash.h>
#include <mudnn_backend/lending.h>

#include <ATen/SDPBackend.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <tuple>

#include "support/results.h"

namespace musa_emulator::dnn {
namespace {

// torch's kernels. Their numbers are part of the keys of make_all_in; see key_start().
enum class Kernel : uint8_t { none, flash, efficient, cudnn };

using Bias = std::optional<at::Tensor>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kAlignment = 32; // the memory-efficient kernel pads rows of lse to a multiple of this

size_t key_start(bool backward, Kernel kernel, bool causal) {
  constexpr size_t first = 200; // see results.h
  return first + 8 * backward + 2 * static_cast<size_t>(kernel) + causal;
}

// Returns the mask as torch's kernels read it: added to the scores, of q's type. The last stride is 1.
Bias bias_of(const Attention& a) {
  if (!a.mask.defined()) {
    return std::nullopt;
  }
  const at::Tensor mask = a.mask.size(3) == a.k.size(2) ? a.mask : a.mask.expand({-1, -1, -1, a.k.size(2)});
  if (mask.scalar_type() != at::kBool) {
    return mask.stride(3) == 1 ? mask : mask.contiguous();
  }
  const at::Tensor bias = at::zeros(mask.sizes(), options_of(a.q.scalar_type()));
  return bias.masked_fill_(mask.logical_not(), -kInfinity);
}

at::SDPBackend choice_of_torch(const Attention& a, const at::Tensor& k, const at::Tensor& v, const Bias& bias) {
  return static_cast<at::SDPBackend>(at::_fused_sdp_choice(
      a.q, k, v, bias, /*dropout_p=*/0.0, a.causal, a.scale, /*enable_gqa=*/k.size(1) != a.q.size(1)));
}

// Whether torch.cuda computes this attention with cuDNN. The tensors do not show whether a gradient will be computed;
// for gradients cuDNN supports neither larger heads nor sequences of one row, so both are excluded here.
bool by_cudnn(const Attention& a, const Bias& bias) {
  constexpr int64_t longest_head = 128;
  const int64_t least_rows = bias ? 2 : 64; // flash attention handles shorter sequences, but no mask
  return a.q.size(3) <= longest_head && a.q.size(2) >= least_rows && a.k.size(2) >= least_rows &&
      choice_of_torch(a, a.k, a.v, bias) == at::SDPBackend::cudnn_attention;
}

// The memory-efficient kernel requires q, k and v with the same number of heads, so torch's function gets views of k and
// v with the number of q.
bool by_efficient(const Attention& a, const Bias& bias) {
  const auto resembling = [&](const at::Tensor& tensor) {
    return tensor.size(1) == a.q.size(1) ? tensor : tensor.narrow(1, 0, 1).expand({-1, a.q.size(1), -1, -1});
  };
  const auto choice = choice_of_torch(a, resembling(a.k), resembling(a.v), bias);
  return choice == at::SDPBackend::efficient_attention || (bias && choice == at::SDPBackend::cudnn_attention);
}

Kernel kernel_for(const Attention& a, const Bias& bias) {
  const at::ScalarType type = a.q.scalar_type();
  const int64_t dim = a.q.size(3);
  if (dim != a.k.size(3) || dim != a.v.size(3) || (bias && (a.causal || bias->scalar_type() != type))) {
    return Kernel::none;
  }
  if (at::isReducedFloatingType(type)) {
    if (dim % 8 == 0 && by_cudnn(a, bias)) {
      return Kernel::cudnn;
    }
    if (!bias) {
      return dim % 8 == 0 && dim <= 256 ? Kernel::flash : Kernel::none;
    }
  }
  return by_efficient(a, bias) ? Kernel::efficient : Kernel::none;
}

// Returns keys or values with one copy for each head of q.
at::Tensor for_each_head(const at::Tensor& tensor, const at::Tensor& q) {
  return tensor.size(1) == q.size(1) ? tensor : tensor.repeat_interleave(q.size(1) / tensor.size(1), 1);
}

// Writes the sums of the gradients of copies that for_each_head made.
void add_copies(at::Tensor gradient, const at::Tensor& of_copies) {
  at::sum_out(gradient, of_copies.unflatten(1, {gradient.size(1), -1}), {2});
}

Attention with_every_head(const Attention& a) {
  Attention whole = a;
  whole.k = for_each_head(a.k, a.q);
  whole.v = for_each_head(a.v, a.q);
  return whole;
}

// Returns [N, H or 1, L, S].
Bias for_cudnn(const Attention& a, const Bias& bias) {
  return bias ? Bias(bias->expand({a.q.size(0), -1, a.q.size(2), -1})) : bias;
}

// Returns [N, H, L, S] with rows at a multiple of 16 elements.
Bias for_efficient(const Attention& a, const Bias& bias) {
  if (!bias) {
    return bias;
  }
  constexpr int64_t multiple = 16;
  const int64_t columns = a.k.size(2), missing = (multiple - columns % multiple) % multiple;
  const at::Tensor rows = missing == 0 ? *bias : at::constant_pad_nd(*bias, {0, missing}).narrow(3, 0, columns);
  return rows.expand({a.q.size(0), a.q.size(1), a.q.size(2), columns});
}

// Returns the logsumexp of the memory-efficient kernel as muDNN gives it: minus infinity for queries that attend to no
// key, for which the kernel writes 0.
at::Tensor without_blind_rows(const Bias& bias, const at::Tensor& lse) {
  return bias ? lse.masked_fill(bias->amax({3}).eq(-kInfinity), -kInfinity) : lse;
}

// Returns the logsumexp as the memory-efficient kernel reads it. An infinite value makes all weights of a row 0.
at::Tensor for_efficient_gradients(const at::Tensor& lse) {
  const int64_t missing = (kAlignment - lse.size(2) % kAlignment) % kAlignment;
  return at::constant_pad_nd(lse.masked_fill(lse.eq(-kInfinity), kInfinity), {0, missing}, kInfinity);
}

// Whether `out` has the dimension order that torch's functions choose for this query. cuDNN graphs are cached by the
// strides of q, k and v alone, so another order of `out` would reuse a wrong graph.
bool ordered_as_torchs(const at::Tensor& out, const at::Tensor& q) {
  return out.strides() == at::infer_dense_strides(q.sizes(), q.strides());
}

// The kernel that computes the gradients, where `forward` computes `out`. It supports the operands as well.
Kernel kernel_of_gradients(
    Kernel forward, const Attention& a, const Bias& bias, const at::Tensor& grad_out, const at::Tensor& out,
    const at::Tensor& lse) {
  if (forward != Kernel::cudnn ||
      (ordered_as_torchs(out, a.q) && grad_out.strides() == out.strides() && lse.is_contiguous())) {
    return forward;
  }
  return bias ? Kernel::efficient : Kernel::flash;
}

// Computes the gradients of `a`, whose k and v have q's number of heads unless the kernel is cuDNN's.
std::array<at::Tensor, 3> gradients_by(
    Kernel kernel, const Attention& a, const Bias& bias, const at::Tensor& grad_out, const at::Tensor& out,
    const at::Tensor& lse) {
  const at::Tensor unused = new_tensor({2}, at::kLong); // the dropout state, unused without dropout
  const auto first_three = [](const auto& results) -> std::array<at::Tensor, 3> {
    return {std::get<0>(results), std::get<1>(results), std::get<2>(results)};
  };
  const int64_t l = a.q.size(2), s = a.k.size(2);
  switch (kernel) {
    case Kernel::cudnn:
      return first_three(
          at::_scaled_dot_product_cudnn_attention_backward(
              grad_out, a.q, a.k, a.v, out, lse.unsqueeze(-1), unused, unused,
              for_cudnn(a, bias).value_or(at::Tensor()), {}, {}, l, s, /*dropout_p=*/0.0, a.causal, a.scale));
    case Kernel::efficient:
      return first_three(
          at::_scaled_dot_product_efficient_attention_backward(
              grad_out, a.q, a.k, a.v, for_efficient(a, bias).value_or(at::Tensor()), out, for_efficient_gradients(lse),
              unused.select(0, 0), unused.select(0, 1), /*dropout_p=*/0.0, {true, true, true, false}, a.causal,
              a.scale));
    default:
      return first_three(
          at::_scaled_dot_product_flash_attention_backward(
              grad_out, a.q, a.k, a.v, out, lse, {}, {}, l, s, /*dropout_p=*/0.0, a.causal, unused, unused, a.scale));
  }
}

std::array<at::Tensor, 2> forward_by(Kernel kernel, const Attention& a, const Bias& bias) {
  const int64_t l = a.q.size(2);
  if (kernel == Kernel::cudnn) {
    const auto result = at::_scaled_dot_product_cudnn_attention(
        a.q, a.k, a.v, for_cudnn(a, bias), /*compute_log_sumexp=*/true, /*dropout_p=*/0.0, a.causal, false, a.scale);
    return {std::get<0>(result), std::get<1>(result).squeeze(-1)};
  }
  if (kernel == Kernel::efficient) {
    const auto result = at::_scaled_dot_product_efficient_attention(
        a.q, a.k, a.v, for_efficient(a, bias), /*compute_log_sumexp=*/true, /*dropout_p=*/0.0, a.causal, a.scale);
    return {std::get<0>(result), without_blind_rows(bias, std::get<1>(result).narrow(2, 0, l))};
  }
  const auto result =
      at::_scaled_dot_product_flash_attention(a.q, a.k, a.v, /*dropout_p=*/0.0, a.causal, false, a.scale);
  return {std::get<0>(result), std::get<1>(result).narrow(2, 0, l)};
}

} // namespace

bool device_flash(const Attention& given, const at::Tensor& out, const at::Tensor& lse) {
  const Bias bias = bias_of(given);
  const Kernel kernel = kernel_for(given, bias);
  if (kernel == Kernel::none) {
    return false;
  }
  // cuDNN and flash attention share keys among heads.
  const Attention a = kernel == Kernel::efficient ? with_every_head(given) : given;
  const auto make = [&] { return forward_by(kernel, a, bias); };
  const std::array results{out, lse};
  if (overlaps(out, {&a.q, &a.k, &a.v})) {
    copy_results(results, make());
  } else {
    const size_t key = key_of(key_start(false, kernel, a.causal), {&out, &lse, &a.q, &a.k, &a.v, &a.mask});
    copy_results(results, make_all_in(results, key, make));
  }
  return true;
}

bool device_flash_backward(
    const Attention& given, const at::Tensor& grad_out, const at::Tensor& out, const at::Tensor& lse,
    const at::Tensor& grad_q, const at::Tensor& grad_k, const at::Tensor& grad_v) {
  const Bias bias = bias_of(given);
  const Kernel forward = kernel_for(given, bias);
  if (forward == Kernel::none) {
    return false;
  }
  const Kernel kernel = kernel_of_gradients(forward, given, bias, grad_out, out, lse);
  const bool copies = kernel != Kernel::cudnn && given.q.size(1) != given.k.size(1);
  const Attention a = copies ? with_every_head(given) : given;
  const std::array results{grad_q, copies ? at::empty_like(a.k) : grad_k, copies ? at::empty_like(a.v) : grad_v};
  const auto make = [&] { return gradients_by(kernel, a, bias, grad_out, out, lse); };
  const auto overwrites = [&](const at::Tensor& result) {
    return overlaps(result, {&grad_out, &a.q, &a.k, &a.v, &out, &lse});
  };
  if (std::any_of(results.begin(), results.end(), overwrites)) {
    copy_results(results, make());
  } else {
    const size_t key = key_of(
        key_start(true, kernel, a.causal),
        {&results[0], &results[1], &results[2], &grad_out, &a.q, &a.k, &a.v, &out, &a.mask});
    copy_results(results, make_all_in(results, key, make));
  }
  if (copies) {
    add_copies(grad_k, results[1]);
    add_copies(grad_v, results[2]);
  }
  return true;
}

} // namespace musa_emulator::dnn
