// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAFunctions.h>
#include <c10/musa/MUSAGuard.h>
#include <c10/musa/MUSAStream.h>

#include <algorithm>

#include "checks.h"
#include "operators.h"

namespace musa_ops_serving {
namespace {

const char* const kOp = "paged_attention";

// Returns the number of blocks of threads that share the keys of a tile. It depends on sizes alone, so a graph may record it.
int splits_of(const Attention& a, int64_t most_keys, int processors) {
  constexpr int64_t kMost = 128;
  const int64_t blocks = std::max<int64_t>(int64_t(a.sequences) * a.tiles * a.kv_heads, 1);
  if (!a.few_rows) { // enough to occupy the device, and each with enough keys
    constexpr int64_t kLeastKeys = 256, kBlocksOfProcessor = 4;
    const int64_t wanted = (kBlocksOfProcessor * processors + blocks - 1) / blocks;
    return static_cast<int>(std::clamp<int64_t>(std::min(wanted, most_keys / kLeastKeys), 1, kMost));
  }
  // The device takes blocks in waves: compares one block for all keys with the most blocks of a few numbers of waves. A block costs
  // the time of some keys besides its own, and so does the second kernel.
  constexpr int64_t kLeastKeys = 128, kKeysOfBlock = 96, kKeysOfCombination = 128, kWaves = 4;
  const int64_t resident = std::max<int64_t>(int64_t(kResidentBlocks) * processors, 1);
  const int64_t most = std::clamp<int64_t>(most_keys / kLeastKeys, 1, kMost);
  const int64_t least_waves = (blocks + resident - 1) / resident;
  int64_t best = 1, least_time = least_waves * (most_keys + kKeysOfBlock);
  for (int64_t waves = least_waves; waves < least_waves + kWaves; ++waves) {
    const int64_t splits = std::min(waves * resident / blocks, most);
    const int64_t taken = (blocks * splits + resident - 1) / resident;
    const int64_t time = taken * ((most_keys + splits - 1) / splits + kKeysOfBlock) + kKeysOfCombination;
    if (splits > 1 && time < least_time) {
      least_time = time;
      best = splits;
    }
  }
  return static_cast<int>(best);
}

} // namespace

at::Tensor& paged_attention_out(
    const at::Tensor& query, const at::Tensor& key_cache, const at::Tensor& value_cache, const at::Tensor& block_table,
    const at::Tensor& query_starts, const at::Tensor& sequence_lengths, int64_t max_query_length,
    int64_t max_sequence_length, double scale, bool causal, int64_t window, double soft_cap,
    const std::optional<at::Tensor>& alibi_slopes, const std::optional<at::Tensor>& sinks,
    const std::optional<at::Tensor>& key_scale, const std::optional<at::Tensor>& value_scale, at::Tensor& out) {
  const Dtype dtype = check_alike(kOp, {{"query", query}, {"out", out}});
  const c10::Device device = query.device();
  check_dims(kOp, {"query", query}, 3, "[tokens, heads, head_size]");
  const CacheDtype stored = check_cache(kOp, {"key_cache", key_cache}, query);
  TORCH_CHECK(
      check_cache(kOp, {"value_cache", value_cache}, query) == stored, kOp, ": expected value_cache of the dtype of ",
      "key_cache, ", key_cache.scalar_type(), ", got ", value_cache.scalar_type());
  const int64_t tokens = query.size(0), heads = query.size(1), head_size = query.size(2);
  const int64_t blocks = key_cache.size(0), block_size = key_cache.size(1), kv_heads = key_cache.size(2);
  const int64_t value_size = value_cache.size(3);
  TORCH_CHECK(
      kv_heads > 0 && heads > 0 && heads % kv_heads == 0, kOp, ": expected a number of heads of query that the ",
      kv_heads, " heads of key_cache divide, got ", heads);
  check_sizes(kOp, {"key_cache", key_cache}, {blocks, block_size, kv_heads, head_size}, "with the head size of query");
  check_sizes(
      kOp, {"value_cache", value_cache}, {blocks, block_size, kv_heads, value_size},
      "with blocks and heads of key_cache");
  check_sizes(kOp, {"out", out}, {tokens, heads, value_size}, "[tokens, heads, value_size]");
  TORCH_CHECK(
      head_size > 0 && head_size % 8 == 0 && value_size > 0 && value_size % 8 == 0, kOp,
      ": expected head sizes that are multiples of 8, got ", head_size, " for keys and ", value_size,
      " for values.\nFix: pad queries, keys and values with zeros");
  TORCH_CHECK(
      is_aligned(key_cache) && is_aligned(value_cache), kOp,
      ": expected caches whose addresses and strides are multiples of 8 elements, because these are loaded together, ",
      "got strides ", key_cache.strides(), " and ", value_cache.strides(),
      ".\nFix: allocate each block of tokens with padding to a multiple of 8 elements");
  check_kind(kOp, {"block_table", block_table}, at::kInt, 2, device);
  check_kind(kOp, {"query_starts", query_starts}, at::kInt, 1, device);
  check_kind(kOp, {"sequence_lengths", sequence_lengths}, at::kInt, 1, device);
  const int64_t sequences = sequence_lengths.size(0);
  check_sizes(kOp, {"query_starts", query_starts}, {sequences + 1}, "one more than sequence_lengths");
  check_sizes(
      kOp, {"block_table", block_table}, {sequences, block_table.size(1)}, "with a row for each of sequence_lengths");
  TORCH_CHECK(
      block_table.size(1) <= 1 || block_table.stride(1) == 1, kOp,
      ": expected block_table with contiguous rows, got strides ", block_table.strides());
  TORCH_CHECK(window == -1 || window > 0, kOp, ": expected a window of at least one key, or -1 for none, got ", window);
  TORCH_CHECK(soft_cap >= 0, kOp, ": expected a soft_cap that is positive, or 0 for none, got ", soft_cap);
  for (const int64_t value : {tokens, block_size, block_table.size(1), max_query_length, max_sequence_length}) {
    check_int32(kOp, "a size or a length", value);
  }
  TORCH_CHECK(
      kv_heads <= 65535 && (sequences + 1) * std::max<int64_t>(tokens, 1) * heads / kv_heads <= int64_t{1} << 40, kOp,
      ": too many heads or sequences: ", kv_heads, " key heads, ", sequences, " sequences of ", tokens, " tokens");
  Attention a{};
  a.key_scale = check_scale(kOp, "key_scale", key_scale, kv_heads, device);
  a.value_scale = check_scale(kOp, "value_scale", value_scale, kv_heads, device);
  a.slopes = check_floats(kOp, "alibi_slopes", alibi_slopes, heads, device, "head");
  a.sinks = check_floats(kOp, "sinks", sinks, heads, device, "head");
  if (tokens == 0) {
    return out;
  }
  const c10::musa::MUSAGuard guard(device);
  const at::Tensor queries = readable(query);
  const at::Tensor starts = query_starts.contiguous(), lengths = sequence_lengths.contiguous();
  const bool direct = (value_size == 1 || out.stride(2) == 1) && is_aligned(out);
  const at::Tensor written = direct ? out : at::empty(out.sizes(), out.options());
  a.query = heads_of(queries);
  a.out = heads_of(written);
  a.keys = cache_of(key_cache);
  a.values = cache_of(value_cache);
  a.block_table = block_table.const_data_ptr<int32_t>();
  a.table_stride = block_table.stride(0);
  a.query_starts = starts.const_data_ptr<int32_t>();
  a.lengths = lengths.const_data_ptr<int32_t>();
  a.blocks = blocks;
  a.tokens = static_cast<int>(tokens);
  a.heads = static_cast<int>(heads);
  a.kv_heads = static_cast<int>(kv_heads);
  a.head_size = static_cast<int>(head_size);
  a.value_size = static_cast<int>(value_size);
  a.sequences = static_cast<int>(sequences);
  a.block_size = static_cast<int>(block_size);
  a.most_blocks = static_cast<int>(block_table.size(1));
  a.most_query = static_cast<int>(max_query_length);
  a.window = window == -1 ? 0 : static_cast<int>(std::min<int64_t>(window, INT32_MAX));
  a.scale = static_cast<float>(scale);
  a.soft_cap = static_cast<float>(soft_cap);
  a.causal = causal;

  const musaDeviceProp& properties = c10::musa::device_properties(device.index());
  const int64_t rows = std::min(max_query_length, tokens) * (heads / kv_heads);
  // A launch with more than 48 KiB needs an attribute of the kernel, and would leave other blocks of the processor no room.
  const size_t memory = std::min<size_t>(properties.sharedMemPerBlock, 48 << 10);
  a.few_rows = has_few_rows(a, rows, dtype, stored, memory);
  a.rows = a.few_rows ? std::max(static_cast<int>(rows), 1) : rows_of_tile(rows, a.head_size, a.value_size, memory);
  TORCH_CHECK(
      a.rows > 0, kOp, ": heads of ", head_size, " elements with values of ", value_size,
      " do not fit into the shared memory of a block, ", memory, " bytes");
  a.tiles = static_cast<int>(std::max<int64_t>((rows + a.rows - 1) / a.rows, 1));
  TORCH_CHECK(
      (sequences + 1) * a.tiles <= INT32_MAX, kOp, ": ", sequences, " sequences of up to ", max_query_length,
      " tokens are too many for one launch.\nFix: call the operator for some of the sequences at a time");
  const int64_t most_keys = window == -1 ? max_sequence_length : std::min(max_sequence_length, window);
  a.splits = splits_of(a, most_keys, properties.multiProcessorCount);
  at::Tensor partial, statistics; // until the launch; the allocator keeps them for the stream
  if (a.splits > 1) {
    const auto floats = query.options().dtype(at::kFloat);
    partial = at::empty({a.splits, tokens, heads, value_size}, floats);
    statistics = at::empty({2, a.splits, tokens, heads}, floats);
    a.partial = partial.mutable_data_ptr<float>();
    a.maxima = statistics.mutable_data_ptr<float>();
    a.sums = a.maxima + a.splits * tokens * heads;
  }
  attend(a, dtype, stored, c10::musa::getCurrentMUSAStream().stream());
  C10_MUSA_KERNEL_LAUNCH_CHECK();
  if (!direct) {
    out.copy_(written);
  }
  return out;
}

at::Tensor paged_attention(
    const at::Tensor& query, const at::Tensor& key_cache, const at::Tensor& value_cache, const at::Tensor& block_table,
    const at::Tensor& query_starts, const at::Tensor& sequence_lengths, int64_t max_query_length,
    int64_t max_sequence_length, double scale, bool causal, int64_t window, double soft_cap,
    const std::optional<at::Tensor>& alibi_slopes, const std::optional<at::Tensor>& sinks,
    const std::optional<at::Tensor>& key_scale, const std::optional<at::Tensor>& value_scale) {
  check_dims(kOp, {"query", query}, 3, "[tokens, heads, head_size]");
  check_dims(kOp, {"value_cache", value_cache}, 4, "[blocks, block_size, kv_heads, value_size]");
  at::Tensor out = at::empty({query.size(0), query.size(1), value_cache.size(3)}, query.options());
  paged_attention_out(
      query, key_cache, value_cache, block_table, query_starts, sequence_lengths, max_query_length, max_sequence_length,
      scale, causal, window, soft_cap, alibi_slopes, sinks, key_scale, value_scale, out);
  return out;
}

} // namespace musa_ops_serving
