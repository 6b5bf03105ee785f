// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The arguments of the kernels. Included by host and device code, so it includes no header of torch. Strides are in elements.
#pragma once

#include <musa_runtime.h>

#include <cstddef>
#include <cstdint>

namespace musa_ops_serving {

enum class Dtype { kFloat16, kBFloat16, kFloat32 };
enum class CacheDtype { kSame, kFloat8E4M3, kFloat8E5M2 };

// [tokens, heads, size], with a contiguous last dimension.
struct Heads {
  void* data;
  int64_t token_stride, head_stride;
};

// [blocks, block_size, kv_heads, size], with a contiguous last dimension.
struct Cache {
  void* data;
  int64_t block_stride, slot_stride, head_stride;
};

// One number for all heads (step 0) or one for each (step 1). `data` is null for 1.
struct Scale {
  const float* data;
  int step;
};

// ---- cache.mu

struct CacheWrite {
  Heads key, value;
  Cache key_cache, value_cache;
  Scale key_scale, value_scale;
  const int64_t* slots;
  int64_t tokens, blocks;
  int heads, key_size, value_size, block_size;
  bool aligned; // eight elements are loaded and stored together
};

void write_cache(const CacheWrite& write, Dtype dtype, CacheDtype cache_dtype, musaStream_t stream);

// ---- attention.mu

struct Attention {
  Heads query, out;
  Cache keys, values;
  Scale key_scale, value_scale;
  const int32_t* block_table;
  int64_t table_stride;
  const int32_t* query_starts;
  const int32_t* lengths;
  const float* slopes; // of ALiBi, one for each head, or null
  const float* sinks;  // one for each head, or null
  float* partial;      // [splits, tokens, heads, value_size], if splits > 1
  float* maxima;       // [splits, tokens, heads]
  float* sums;         // [splits, tokens, heads]
  int64_t blocks;
  int tokens, heads, kv_heads, head_size, value_size, sequences, block_size, most_blocks, most_query;
  int rows;   // of a tile: 4, 8 or 16 pairs of a token and a head
  int tiles;  // of each sequence and key head
  int splits; // blocks of threads that share the keys of a tile
  int window; // 0: no window
  float scale, soft_cap;
  bool causal;
};

// The rows of a tile for this number of rows of a sequence and key head, whose block needs at most `memory` bytes of shared
// memory; 0 if no tile does.
int rows_of_tile(int64_t rows, int head_size, int value_size, size_t memory);

void attend(const Attention& attention, Dtype dtype, CacheDtype cache_dtype, musaStream_t stream);

} // namespace musa_ops_serving
