// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Attention over packed sequences with torch's memory-efficient kernels. The kernels read the offsets from device
// memory, so the call can be captured into a graph; a host loop over sequences would have to synchronize for the
// offsets.
#include <mudnn_backend/flash.h>

#include <limits>

namespace musa_emulator::dnn {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kNoMask = 0; // values of torch's custom_mask_type
constexpr int64_t kCausalFromBottomRight = 2;
constexpr int64_t kSums = 32; // torch's kernels pad the log-sum-exp rows to a multiple of this

bool serves(const Packed& packed, const at::Tensor& lse) {
  const auto aligned = [](const at::Tensor& tensor) {
    return tensor.stride(-1) == 1 && tensor.size(-1) % 8 == 0 && tensor.stride(0) % 8 == 0 && tensor.stride(1) % 8 == 0;
  };
  return lse.dim() == 3 && packed.q.size(1) == packed.k.size(1) && packed.k.size(1) == packed.v.size(1) &&
      aligned(packed.q) && aligned(packed.k) && aligned(packed.v);
}

at::Tensor lengths(const at::Tensor& offsets) {
  return offsets.narrow(0, 1, offsets.numel() - 1).sub(offsets.narrow(0, 0, offsets.numel() - 1));
}

at::Tensor count_to(int64_t end) { return at::arange(end, options_of(at::kInt)); }

// Returns the sequence index of each packed row. Rows outside all sequences get an index too; see inside().
at::Tensor sequences(const at::Tensor& offsets, const at::Tensor& rows) {
  const int64_t count = offsets.numel() - 1;
  return at::bucketize(rows, offsets.narrow(0, 1, count), /*out_int32=*/true, /*right=*/true).clamp_max(count - 1);
}

at::Tensor inside(const at::Tensor& offsets, const at::Tensor& rows) {
  return rows.ge(offsets.select(0, 0)).logical_and(rows.lt(offsets.select(0, offsets.numel() - 1)));
}

// Whether the query at `position` of its sequence attends to at least one key.
at::Tensor sees(const Packed& packed, const at::Tensor& position, const at::Tensor& queries, const at::Tensor& keys) {
  const at::Tensor any = keys.gt(0).logical_and(position.lt(queries));
  return packed.causal ? any.logical_and(position.add(keys).ge(queries)) : any;
}

// Returns a [T] mask of the rows of q that attend to no key. torch's kernels leave their results unwritten or NaN.
at::Tensor blind_rows(const Packed& packed) {
  const at::Tensor rows = count_to(packed.q.size(0));
  const at::Tensor sequence = sequences(packed.offsets_q, rows);
  const at::Tensor position = rows.sub(packed.offsets_q.index_select(0, sequence));
  const at::Tensor queries = lengths(packed.offsets_q).index_select(0, sequence);
  const at::Tensor keys = lengths(packed.offsets_k).index_select(0, sequence);
  return sees(packed, position, queries, keys).logical_and(inside(packed.offsets_q, rows)).logical_not();
}

// Returns a [T] mask of the rows of k whose sequence has no query.
at::Tensor unused_rows(const Packed& packed) {
  const at::Tensor rows = count_to(packed.k.size(0));
  const at::Tensor sequence = sequences(packed.offsets_k, rows);
  const at::Tensor queries = lengths(packed.offsets_q).index_select(0, sequence);
  return queries.gt(0).logical_and(inside(packed.offsets_k, rows)).logical_not();
}

void copy_rows(at::Tensor& result, const at::Tensor& value, const at::Tensor& zero) {
  result.copy_(value.squeeze(0));
  result.masked_fill_(zero.view({-1, 1, 1}), 0);
}

} // namespace

bool device_flash_packed(const Packed& packed, at::Tensor out, at::Tensor lse) {
  if (!serves(packed, lse)) {
    return false;
  }
  const auto result = at::_efficient_attention_forward(
      packed.q.unsqueeze(0), packed.k.unsqueeze(0), packed.v.unsqueeze(0), /*bias=*/{}, packed.offsets_q,
      packed.offsets_k, packed.longest_q, packed.longest_k, /*dropout_p=*/0.0,
      packed.causal ? kCausalFromBottomRight : kNoMask, /*compute_log_sumexp=*/true, packed.scale);
  copy_rows(out, std::get<0>(result), blind_rows(packed));
  const at::Tensor queries = lengths(packed.offsets_q).unsqueeze(1);
  const at::Tensor keys = lengths(packed.offsets_k).unsqueeze(1);
  lse.copy_(std::get<1>(result).narrow(2, 0, lse.size(2)));
  lse.masked_fill_(sees(packed, count_to(lse.size(2)), queries, keys).logical_not().unsqueeze(1), -kInfinity);
  return true;
}

bool device_flash_packed_backward(
    const Packed& packed, const at::Tensor& grad_out, const at::Tensor& out, const at::Tensor& lse, at::Tensor grad_q,
    at::Tensor grad_k, at::Tensor grad_v) {
  if (!serves(packed, lse) || grad_out.stride(-1) != 1 || out.stride(-1) != 1) {
    return false;
  }
  // A query without keys has an lse of log(0). torch's kernels expect infinity for it, which makes its weights 0.
  const int64_t longest = lse.size(2);
  const at::Tensor sums =
      at::full({lse.size(0), lse.size(1), (longest + kSums - 1) / kSums * kSums}, kInfinity, options_of(at::kFloat));
  sums.narrow(2, 0, longest).copy_(lse);
  sums.masked_fill_(sums.eq(-kInfinity), kInfinity);
  const at::Tensor unused = new_tensor({}, at::kLong); // the dropout state, unused without dropout
  const auto gradients = at::_efficient_attention_backward(
      grad_out.unsqueeze(0), packed.q.unsqueeze(0), packed.k.unsqueeze(0), packed.v.unsqueeze(0), /*bias=*/{},
      out.unsqueeze(0), packed.offsets_q, packed.offsets_k, packed.longest_q, packed.longest_k, sums,
      /*dropout_p=*/0.0, unused, unused, packed.causal ? kCausalFromBottomRight : kNoMask,
      /*bias_requires_grad=*/false, packed.scale);
  copy_rows(grad_q, std::get<0>(gradients), blind_rows(packed));
  const at::Tensor without_queries = unused_rows(packed);
  copy_rows(grad_k, std::get<1>(gradients), without_queries);
  copy_rows(grad_v, std::get<2>(gradients), without_queries);
  return true;
}

} // namespace musa_emulator::dnn
