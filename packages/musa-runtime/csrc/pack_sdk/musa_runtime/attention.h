// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <numeric>

// Helpers shared by the runtime's composed attention and by packs that serve attention.

namespace musa_runtime {

// Whether torch.nn.attention.sdpa_kernel allows a fused kernel. FLASH_ATTENTION, EFFICIENT_ATTENTION, CUDNN_ATTENTION and
// OVERRIDEABLE all do, because a musa device has one fused kernel. MATH has precedence only as the first of a priority
// list.
inline bool allows_fused_attention() {
  at::Context& context = at::globalContext();
  const bool fused = context.userEnabledFlashSDP() || context.userEnabledMemEfficientSDP() ||
      context.userEnabledCuDNNSDP() || context.userEnabledOverrideableSDP();
  return fused && !(context.userEnabledMathSDP() && context.sDPPriorityOrder().front() == at::SDPBackend::math);
}

// Whether the tensor belongs to a tracer: a fake tensor, or one with symbolic sizes.
inline bool is_traced(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->is_python_dispatch() ||
      tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

// Returns an output of `sizes`, of the query's rank, with dimensions in the query's order of strides. torch's fake kernel
// of _scaled_dot_product_fused_attention_overrideable has these strides.
inline at::Tensor empty_attention_output(const at::Tensor& query, at::IntArrayRef sizes) {
  if (query.sizes() == sizes) {
    return at::empty_like(query);
  }
  std::vector<int64_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return query.stride(a) > query.stride(b); });
  std::vector<int64_t> physical, back(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    physical.push_back(sizes[static_cast<size_t>(order[i])]);
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return at::empty(physical, query.options()).permute(back);
}

// Index maps between packed sequences [T, ...] and padded ones [B, longest, ...]. Sequence b has the rows offsets[b] to
// offsets[b + 1]. The maps are computed on the device, so that no call waits for it and a graph can capture them.
class PackedSequences {
 public:
  // offsets: integers [B + 1] on the device. longest: an upper bound of the lengths. total: T.
  PackedSequences(const at::Tensor& offsets, int64_t longest, int64_t total)
      : longest_(longest), starts_(offsets.slice(0, 0, -1).to(at::kLong)), ends_(offsets.slice(0, 1).to(at::kLong)) {
    const auto options = starts_.options();
    const at::Tensor positions = at::arange(longest, options);
    valid_ = positions < lengths().unsqueeze(1);
    slots_ = (starts_.unsqueeze(1) + positions).clamp(0, std::max<int64_t>(total - 1, 0)).flatten();
    const at::Tensor row = at::arange(total, options);
    const at::Tensor sequence =
        at::bucketize(row, ends_, /*out_int32=*/false, /*right=*/true).clamp(0, std::max<int64_t>(count() - 1, 0));
    const at::Tensor position = count() > 0 ? row - starts_.index_select(0, sequence) : row;
    outside_ = position.lt(0).logical_or_(position.ge(longest));
    if (count() > 0) {
      outside_.logical_or_(row.ge(ends_.index_select(0, sequence)));
    }
    rows_ = sequence * longest + position.clamp(0, std::max<int64_t>(longest - 1, 0));
  }

  int64_t count() const { return starts_.size(0); }
  // INT64 [B].
  at::Tensor lengths() const { return ends_ - starts_; }
  // Whether a padded row belongs to its sequence: BOOL [B, longest].
  const at::Tensor& valid() const { return valid_; }
  // [T, ...] to [B, longest, ...]. Rows past the end of a sequence are 0.
  at::Tensor pad(const at::Tensor& packed) const {
    const std::vector<int64_t> sizes = with_rows(packed.sizes().slice(1), {count(), longest_});
    if (packed.numel() == 0 || count() * longest_ == 0) {
      return packed.new_zeros(sizes);
    }
    return packed.index_select(0, slots_).view(sizes).masked_fill(expanded(valid_.logical_not(), sizes.size()), 0);
  }
  // [B, longest, ...] to [T, ...]. Rows that belong to no sequence are 0.
  at::Tensor pack(const at::Tensor& padded) const {
    const std::vector<int64_t> sizes = with_rows(padded.sizes().slice(2), {rows_.size(0)});
    if (padded.numel() == 0 || rows_.size(0) == 0) {
      return padded.new_zeros(sizes);
    }
    return padded.flatten(0, 1).index_select(0, rows_).masked_fill(expanded(outside_, sizes.size()), 0);
  }

 private:
  static std::vector<int64_t> with_rows(at::IntArrayRef tail, std::initializer_list<int64_t> rows) {
    std::vector<int64_t> sizes(rows);
    sizes.insert(sizes.end(), tail.begin(), tail.end());
    return sizes;
  }
  static at::Tensor expanded(at::Tensor mask, size_t dims) {
    while (static_cast<size_t>(mask.dim()) < dims) {
      mask = mask.unsqueeze(-1);
    }
    return mask;
  }

  int64_t longest_;
  at::Tensor starts_, ends_; // [B]
  at::Tensor valid_;
  at::Tensor slots_;         // the packed row of each padded row, [B * longest]
  at::Tensor rows_;          // the padded row of each packed row, [T]
  at::Tensor outside_;       // BOOL [T]
};

} // namespace musa_runtime
