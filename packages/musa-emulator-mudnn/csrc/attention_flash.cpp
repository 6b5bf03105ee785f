// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// ScaledDotProductAttention: RunFlash and RunFlashVarlen, by torch's flash attention kernel on the caller's memory.
#include "cpu_stubs.h"

#include "attention.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/amax_cpu_dispatch.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/eq_cpu_dispatch.h>
#include <ATen/ops/exp_cpu_dispatch.h>
#include <ATen/ops/fill_cpu_dispatch.h>
#include <ATen/ops/masked_fill_cpu_dispatch.h>
#include <ATen/ops/sub_cpu_dispatch.h>
#include <ATen/ops/sum_cpu_dispatch.h>
#include <ATen/ops/zero_cpu_dispatch.h>

#include <optional>
#include <stdexcept>
#include <string>

#include <mudnn_backend/flash.h>
#include "support/alias.h"
#include "support/outputs.h"

namespace musa::dnn {
namespace {

using namespace attention;

bool fits_flash(Call& call, const Handle& handle, const Sizes& sizes) {
  const int arch = arch_of(HandleAccess::device(handle));
  const int64_t larger = std::max(sizes.dim, sizes.v_dim);
  return call.require(arch >= 22, Status::NOT_SUPPORTED, "flash attention needs mp_22 or later") &&
      call.require(
          arch >= 31 ? larger <= 160 || (sizes.dim == 192 && sizes.v_dim == 128) : larger <= 128, Status::NOT_SUPPORTED,
          "flash attention does not support this head dimension");
}

bool accept_lse(Call& call, const Sizes& s, const Tensor& lse) {
  return accept(call, lse, {Type::FLOAT}, {s.n, s.heads, s.q}, "the logsumexp is not FLOAT [N, H, L]");
}

// Whether torch's flash attention supports it: no dropout, equal head dimensions, and torch's alignment of the causal
// mask.
bool suits_torch(const Problem& p) {
  return !p.keep.defined() && p.q.size(3) == p.v.size(3) && (!p.causal || p.diagonal == 0);
}

struct Bias {
  std::optional<at::Tensor> values; // FLOAT, all of [N, H, L, S]
  at::Tensor blind;                 // true for queries without visible keys
  bool causal;                      // whether torch adds the causal mask
};

// Converts the mask to torch's form. The causal mask is merged into a given mask, so that queries without visible keys
// are found.
Bias bias_of(const Problem& p) {
  if (!p.mask.defined()) {
    return {std::nullopt, {}, p.causal};
  }
  at::Tensor values = new_tensor({p.mask.size(0), p.mask.size(1), p.q.size(2), p.k.size(2)}, at::kFloat);
  ops::zero_(values);
  add_masks(p, values);
  const at::Tensor blind = ops::eq(ops::amax(values, {-1}), at::Scalar(kMinusInfinity));
  return {values.expand({p.q.size(0), p.heads(), p.q.size(2), p.k.size(2)}), blind, false};
}

// The kernel assumes that the last stride is 1.
at::Tensor dense(const at::Tensor& tensor) { return tensor.stride(-1) == 1 ? tensor : tensor.contiguous(); }

// Repeats keys or values for each head of q.
at::Tensor for_each_head(const Problem& p, const at::Tensor& tensor) {
  if (p.heads() == p.kv_heads()) {
    return dense(tensor);
  }
  const auto sizes = tensor.sizes();
  return tensor.unsqueeze(2)
      .expand({sizes[0], sizes[1], p.heads() / p.kv_heads(), sizes[2], sizes[3]})
      .reshape({sizes[0], p.heads(), sizes[2], sizes[3]});
}

// Returns the tensor that the kernel writes: the caller's memory, or a temporary if its rows have gaps.
at::Tensor target_for(const at::Tensor& tensor) {
  return tensor.stride(-1) == 1 ? tensor : at::Tensor(new_tensor(tensor.sizes(), tensor.scalar_type()));
}

// Returns [N, L, H, E], the kernel's layout for its outputs and, in the backward pass, for all operands.
at::Tensor by_rows(const at::Tensor& tensor) { return tensor.transpose(1, 2); }

// Whether a device kernel of torch can support it: causal only if there are as many queries as keys.
bool suits_device(const Problem& p) { return suits_torch(p) && (!p.causal || p.q.size(2) == p.k.size(2)); }

Attention attention_of(const Problem& p) { return {dense(p.q), dense(p.k), dense(p.v), p.mask, p.causal, p.scale}; }

void flash(const Problem& p, const at::Tensor& out, const at::Tensor& lse) {
  if (!kOnHost && suits_device(p) && device_flash(attention_of(p), out, lse)) {
    return;
  }
  if (!kOnHost || !suits_torch(p)) {
    in_parts(p, [&](const Problem& some, const auto& of) { attend(some, of(out), of(lse), {}); });
    return;
  }
  const Bias bias = bias_of(p);
  const at::Tensor result = target_for(out);
  at::native::flash_attention_kernel(
      c10::kCPU, by_rows(result), by_rows(lse), dense(p.q), for_each_head(p, p.k), for_each_head(p, p.v),
      /*dropout_p=*/0, bias.causal, bias.values, p.scale);
  if (bias.blind.defined()) {
    at::Tensor sums = lse;
    ops::masked_fill_(sums, bias.blind, at::Scalar(kMinusInfinity)); // torch writes 0
  }
  if (!result.is_same(out)) {
    copy_to(out, result);
  }
}

// The gradient of keys or values, with one part per head of q; the kernel accumulates into it.
class HeadGradient {
 public:
  HeadGradient(const Problem& p, const at::Tensor& target)
      : target_(target),
        tensor_(
            p.heads() == target.size(1)
                ? target_for(target)
                : at::Tensor(
                      new_tensor({target.size(0), p.heads(), target.size(2), target.size(3)}, target.scalar_type()))) {
    ops::zero_(tensor_);
  }
  at::Tensor by_rows() const { return tensor_.transpose(1, 2); }
  // Sums the parts of heads that share a key, and writes the target.
  void finish() {
    const auto sizes = target_.sizes();
    if (tensor_.size(1) != sizes[1]) {
      const Outputs given(target_);
      ops::sum_out(target_, tensor_.view({sizes[0], sizes[1], -1, sizes[2], sizes[3]}), at::IntArrayRef{2});
      given.keep();
    } else if (!tensor_.is_same(target_)) {
      copy_to(target_, tensor_);
    }
  }

 private:
  at::Tensor target_, tensor_;
};

// Makes the logsumexp finite for queries without visible keys; the exponentials of their scores are 0 anyway.
at::Tensor finite(const Problem& p, const at::Tensor& lse) {
  if (!p.mask.defined() && (!p.causal || p.diagonal >= 0)) {
    return lse;
  }
  at::Tensor result = new_tensor(lse.sizes(), at::kFloat);
  at::native::copy_(result, lse);
  return ops::masked_fill_(result, ops::eq(result, at::Scalar(kMinusInfinity)), at::Scalar(0));
}

void flash_backward(
    const Problem& p, const at::Tensor& grad_out, const at::Tensor& out, const at::Tensor& lse,
    const Gradients& gradients) {
  if (!kOnHost && suits_device(p) &&
      device_flash_backward(attention_of(p), dense(grad_out), dense(out), lse, gradients.q, gradients.k, gradients.v)) {
    return;
  }
  const at::Tensor sums = finite(p, lse);
  if (!kOnHost || !suits_torch(p)) {
    in_parts(p, [&](const Problem& some, const auto& of) {
      at::Tensor weights = scores_of(some);
      ops::sub_(weights, of(sums).unsqueeze(-1), 1);
      ops::exp_(weights);
      attend_backward(some, weights, of(grad_out), {of(gradients.q), of(gradients.k), of(gradients.v), {}});
    });
    return;
  }
  const Bias bias = bias_of(p);
  HeadGradient dq(p, gradients.q);
  HeadGradient dk(p, gradients.k);
  HeadGradient dv(p, gradients.v);
  at::native::flash_attention_backward_kernel(
      c10::kCPU, dq.by_rows(), dk.by_rows(), dv.by_rows(), by_rows(dense(grad_out)), by_rows(dense(p.q)),
      by_rows(for_each_head(p, p.k)), by_rows(for_each_head(p, p.v)), by_rows(dense(out)), by_rows(sums),
      /*dropout_p=*/0, bias.causal, bias.values, p.scale);
  for (HeadGradient* gradient : {&dq, &dk, &dv}) {
    gradient->finish();
  }
}

// Completes the sizes from the offsets.
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
             "the number of offsets does not match SetBatchSize") &&
      (padded ? accept_lse(call, sizes, lse)
              : accept(
                    call, lse, {Type::FLOAT}, {sizes.heads, sizes.total_q},
                    "the logsumexp is neither FLOAT [B, H, longest q] nor FLOAT [H, T]")) &&
      call.require(
          (settings.max_q != 0 && settings.max_k != 0) || (settings.p == 0 && !TensorAccess::present(mask)),
          Status::INVALID_PARAMETER, "masks and dropout need SetMaxSeqlenQ and SetMaxSeqlenK") &&
      accept_keep(call, sizes, keep);
}

int64_t checked_length(const int32_t* offsets, int64_t i, int64_t longest, int64_t total) {
  const int64_t length = int64_t{offsets[i + 1]} - offsets[i];
  if (offsets[i] < 0 || length < 0 || length > longest || offsets[i + 1] > total) {
    throw std::runtime_error(
        "sequence " + std::to_string(i) + ", " + std::to_string(length) + " rows, is outside the " +
        std::to_string(total) + " rows of the operand, or is longer than " + std::to_string(longest));
  }
  return length;
}

// Returns rows of a packed tensor as [1, H, L, E].
at::Tensor rows(const at::Tensor& tensor, int64_t first, int64_t count) {
  return tensor.narrow(0, first, count).transpose(0, 1).unsqueeze(0);
}

struct Sequence {
  int64_t index, first_q, first_k, length_q, length_k;
  at::Tensor of_q(const at::Tensor& tensor) const { return rows(tensor, first_q, length_q); }
  at::Tensor of_k(const at::Tensor& tensor) const { return rows(tensor, first_k, length_k); }
  // For [B, H, longest] or [H, T].
  at::Tensor of_lse(const at::Tensor& lse) const {
    return lse.dim() == 2 ? lse.narrow(1, first_q, length_q).unsqueeze(0)
                          : lse.narrow(0, index, 1).narrow(2, 0, length_q);
  }
  // For [B or 1, H or 1, longest q or 1, longest k or 1].
  at::Tensor of_scores(const at::Tensor& tensor) const {
    return part(part(part(tensor, 0, index, 1), 2, 0, length_q), 3, 0, length_k);
  }
};

// Calls function(sequence, problem) for each sequence that is not empty. `whole` holds packed q, k and v. In causal
// attention the last query of a sequence sees its last key, so additional keys come first, as with a key-value cache.
template <class Function>
void for_each_sequence(
    const Sizes& sizes, const Problem& whole, const Tensor& offsets_q, const Tensor& offsets_k, Function&& function) {
  at::Tensor copies[2];
  const int32_t* const q = on_host(offsets_q, copies[0]);
  const int32_t* const k = on_host(offsets_k, copies[1]);
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

Packed packed_of(
    const Settings& settings, const Sizes& sizes, const Tensor& q, const Tensor& k, const Tensor& v,
    const Tensor& offsets_q, const Tensor& offsets_k) {
  const Problem problem = problem_of(settings, sizes, q, k, v, Tensor(), Tensor(), false);
  return {problem.q, problem.k, problem.v,      alias(offsets_q), alias(offsets_k),
          sizes.q,   sizes.k,   problem.causal, problem.scale};
}

void fill(at::Tensor tensor, double value) { ops::fill_(tensor, at::Scalar(value)); }

} // namespace

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
              if (!kOnHost && !TensorAccess::present(mask) && settings.p == 0 && !TensorAccess::present(keep) &&
                  device_flash_packed(packed_of(settings, sizes, q, k, v, offsets_q, offsets_k), result, sums)) {
                return;
              }
              fill(result, 0); // for queries without visible keys, and rows outside all sequences
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
              if (!kOnHost && !TensorAccess::present(mask) && settings.p == 0 && !TensorAccess::present(keep) &&
                  device_flash_packed_backward(
                      packed_of(settings, sizes, q, k, v, offsets_q, offsets_k), gradient, result, sums, all.q, all.k,
                      all.v)) {
                return;
              }
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
