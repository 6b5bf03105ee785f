// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAGuard.h>
#include <c10/musa/MUSAStream.h>

#include "checks.h"
#include "operators.h"

namespace musa_ops_serving {

void reshape_and_cache(
    const at::Tensor& key, const at::Tensor& value, at::Tensor& key_cache, at::Tensor& value_cache,
    const at::Tensor& slot_mapping, const std::optional<at::Tensor>& key_scale,
    const std::optional<at::Tensor>& value_scale) {
  const char* const op = "reshape_and_cache";
  const Dtype dtype = check_alike(op, {{"key", key}, {"value", value}});
  check_dims(op, {"key", key}, 3, "[tokens, kv_heads, head_size]");
  check_dims(op, {"value", value}, 3, "[tokens, kv_heads, value_size]");
  check_kind(op, {"slot_mapping", slot_mapping}, at::kLong, 1, key.device());
  const int64_t tokens = slot_mapping.size(0), heads = key.size(1);
  // Graphs pad keys and values; slot_mapping has the tokens that exist.
  TORCH_CHECK(
      key.size(0) >= tokens && value.size(0) >= tokens && value.size(1) == heads, op,
      ": expected key and value of as many heads as each other and of at least the ", tokens,
      " tokens of slot_mapping, got ", key.sizes(), " and ", value.sizes());
  const CacheDtype stored = check_cache(op, {"key_cache", key_cache}, key);
  TORCH_CHECK(
      check_cache(op, {"value_cache", value_cache}, value) == stored, op, ": expected value_cache of the dtype of ",
      "key_cache, ", key_cache.scalar_type(), ", got ", value_cache.scalar_type());
  const int64_t blocks = key_cache.size(0), block_size = key_cache.size(1);
  check_sizes(
      op, {"key_cache", key_cache}, {blocks, block_size, heads, key.size(2)},
      "[blocks, block_size, kv_heads, head_size] of key");
  check_sizes(
      op, {"value_cache", value_cache}, {blocks, block_size, heads, value.size(2)},
      "with the blocks of key_cache, and heads and size of value");
  for (const int64_t size : {block_size, heads, key.size(2), value.size(2)}) {
    check_int32(op, "a size of the cache", size);
  }
  CacheWrite write{};
  write.key_scale = check_scale(op, "key_scale", key_scale, heads, key.device());
  write.value_scale = check_scale(op, "value_scale", value_scale, heads, key.device());
  if (tokens == 0 || heads == 0) {
    return;
  }
  const c10::musa::MUSAGuard guard(key.device());
  const at::Tensor keys = readable(key, /*aligned=*/false), values = readable(value, /*aligned=*/false);
  const at::Tensor slots = slot_mapping.contiguous();
  write.key = heads_of(keys);
  write.value = heads_of(values);
  write.key_cache = cache_of(key_cache);
  write.value_cache = cache_of(value_cache);
  write.slots = slots.const_data_ptr<int64_t>();
  write.tokens = tokens;
  write.blocks = blocks;
  write.heads = static_cast<int>(heads);
  write.key_size = static_cast<int>(key.size(2));
  write.value_size = static_cast<int>(value.size(2));
  write.block_size = static_cast<int>(block_size);
  write.aligned = is_aligned(keys) && is_aligned(values) && is_aligned(key_cache) && is_aligned(value_cache);
  write_cache(write, dtype, stored, c10::musa::getCurrentMUSAStream().stream());
  C10_MUSA_KERNEL_LAUNCH_CHECK();
}

} // namespace musa_ops_serving
