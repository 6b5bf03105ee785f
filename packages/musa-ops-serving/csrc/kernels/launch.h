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
  const float* sinks; // one for each head, or null
  float* partial; // [splits, tokens, heads, value_size], if splits > 1
  float* maxima; // [splits, tokens, heads]
  float* sums; // [splits, tokens, heads]
  int64_t blocks;
  int tokens, heads, kv_heads, head_size, value_size, sequences, block_size, most_blocks, most_query;
  int rows; // of a tile, pairs of a token and a head: 4, 8 or 16; with few_rows all, up to 8
  int tiles; // of each sequence and key head
  int splits; // blocks of threads that share the keys of a tile
  bool few_rows; // attend_few_rows
  int window; // 0: no window
  float scale, soft_cap;
  bool causal;
};

// The rows of a tile for this number of rows of a sequence and key head, whose block needs at most `memory` bytes of shared
// memory; 0 if no tile does.
int rows_of_tile(int64_t rows, int head_size, int value_size, size_t memory);

void attend(const Attention& attention, Dtype dtype, CacheDtype cache_dtype, musaStream_t stream);

// ---- decode.mu

inline constexpr int kMostFewRows = 8;
inline constexpr int kResidentBlocks = 2; // of attend_few_rows on a processor, by its registers

// Whether attend_few_rows serves these sizes: one tile of at most kMostFewRows rows for each sequence and key head.
bool has_few_rows(const Attention& attention, int64_t rows, Dtype dtype, CacheDtype cache_dtype, size_t memory);

void attend_few_rows(const Attention& attention, Dtype dtype, CacheDtype cache_dtype, musaStream_t stream);

// ---- normalization.mu

struct RmsNorm {
  Heads input, out; // [tokens, heads, size]
  Heads residual, residual_out; // null without a residual
  const void* weight; // [size]
  int64_t tokens;
  int heads, size;
  float epsilon;
  bool aligned;
};

void rms_norm_rows(const RmsNorm& norm, Dtype dtype, musaStream_t stream);

// ---- activation.mu

enum class Activation { kSilu, kGelu, kGeluTanh };

struct Gated {
  const void* input; // [rows, 2 * size]
  void* out; // [rows, size], contiguous
  int64_t rows, row_stride;
  int size;
  bool aligned;
};

void activate_and_multiply(const Gated& gated, Activation activation, Dtype dtype, musaStream_t stream);

// ---- rotary.mu

struct Rotary {
  Heads query, key; // heads of the key follow those of the query
  const int64_t* positions;
  const void* cache; // [positions, rotated]: cosines, then sines
  int64_t tokens, cached_positions;
  int query_heads, key_heads, rotated;
  bool neox, aligned;
  bool float_cache; // float32 instead of the dtype of the query
};

void rotate(const Rotary& rotary, Dtype dtype, musaStream_t stream);

// ---- sampling.mu

// An integer tensor of one dimension, or null.
struct Integers {
  const void* data;
  bool wide; // int64 instead of int32
};

struct Penalties {
  void* logits;
  const bool* prompt_mask;
  Integers counts;
  const float* presence;
  const float* frequency;
  const float* repetition;
  int64_t rows, size;
  int64_t logits_stride, mask_stride, counts_stride; // of rows
};

void penalize(const Penalties& penalties, Dtype dtype, musaStream_t stream);

struct Choice {
  const void* logits;
  void* out; // contiguous
  Integers k;
  const float* p;
  int64_t rows, size, row_stride;
};

void keep_most_probable(const Choice& choice, Dtype dtype, musaStream_t stream);

// ---- experts.mu

struct Routing {
  const void* scores; // [tokens, experts]
  const float* bias; // [experts] or null
  float* weights; // [tokens, k]
  int32_t* experts; // [tokens, k]
  int64_t tokens, row_stride;
  int count, k, groups, top_groups;
  float scale;
  bool softmax, renormalize;
};

void route(const Routing& routing, Dtype dtype, musaStream_t stream);

inline constexpr int kGroupedRows = 256; // rows of a block in moe_group

struct Grouping {
  Integers experts; // of each row
  int64_t rows;
  int count;
  int32_t* counts; // [blocks, count + 1]; the last is of rows without an expert
  int32_t* starts; // [count + 1]
  int64_t* order; // [rows]
  int32_t* offsets; // [count]
};

void group_rows(const Grouping& grouping, musaStream_t stream);

// ---- lora.mu

struct Lora {
  const void* input; // [tokens, inner]
  const void* weights; // [adapters, outer, inner], contiguous
  Integers adapters; // of each token
  void* out; // [tokens, outer]; float32 in shrink
  int64_t tokens, input_stride, out_stride;
  int adapter_count, inner, outer;
  float scale;
  bool aligned;
  bool float_input; // of expand: float32 instead of the dtype of the weights
};

void lora_shrink_rows(const Lora& lora, Dtype dtype, musaStream_t stream);
void lora_expand_rows(const Lora& lora, Dtype dtype, musaStream_t stream);

} // namespace musa_ops_serving
