// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Attention over a paged cache, with the online softmax of Milakov and Gimelshein and the division of the keys between blocks
// of threads of Flash-Decoding.
//
// A row is a token of a sequence and one of the heads that share a key head. A block of threads has a tile of rows and a
// range of the keys, and reads a key once for all rows. It proceeds in steps of a few keys, with three barriers each:
//   scores          eight threads share a key, each with a part of its elements, and write their sums to shared memory
//   probabilities   the threads of a row find its maximum and write the exponentials
//   values          a thread has eight columns of up to eight rows, and adds the values of some of the keys
// If several blocks share the keys of a tile, another kernel combines their results.
#include "kernels/attention.muh"

namespace musa_ops_serving {
namespace {

constexpr int kBlock = kAttentionThreads;
constexpr int kLanes = 8; // threads that share a key; 128 adjacent bytes of 16-bit numbers

template <int rows>
struct Tile {
  static constexpr int kKeysOfThread = rows == 4 ? 4 : 2;
  static constexpr int kKeys = kBlock / kLanes * kKeysOfThread; // of a step
  static constexpr int kRowsOfThread = rows < 8 ? rows : 8; // in the products with the values
  static constexpr int kRowGroups = rows / kRowsOfThread;
  // Distances in floats that avoid conflicts of memory banks: threads of a key read and write adjacent 16 bytes.
  static constexpr int kPart = rows * kEight + 4;
  static constexpr int kLane = rows * kKeys + 4;
  static constexpr int kSums = kRowsOfThread * (kEight + 1); // of a thread
};

// Number of bytes of a block's shared memory.
template <int rows>
constexpr size_t shared_bytes(int head_size) {
  using T = Tile<rows>;
  const size_t step = 2 * T::kKeys * sizeof(int64_t) +
      (static_cast<size_t>(head_size / kEight) * T::kPart + kLanes * T::kLane + rows * T::kKeys + 3 * rows) *
          sizeof(float);
  const size_t end = static_cast<size_t>(T::kSums) * (kBlock / 2) * sizeof(float);
  return step > end ? step : end;
}

template <int rows>
bool fits(int head_size, int value_size, size_t memory) {
  return value_size / kEight * Tile<rows>::kRowGroups <= kBlock && shared_bytes<rows>(head_size) <= memory;
}

template <typename T, typename C, int rows>
__global__ void __launch_bounds__(kBlock) attend_kernel(const Attention a, const bool five_bits) {
  using S = Tile<rows>;
  constexpr int kKeys = S::kKeys;
  extern __shared__ __align__(16) unsigned char attention_room[];
  int64_t* const value_offsets = reinterpret_cast<int64_t*>(attention_room); // [2][kKeys]
  float* const queries = reinterpret_cast<float*>(value_offsets + 2 * kKeys); // [head_size / 8][rows][8]
  float* const scores = queries + a.head_size / kEight * S::kPart; // [kLanes][rows][kKeys]
  float* const probabilities = scores + kLanes * S::kLane; // [kKeys][rows]
  float* const maxima = probabilities + rows * kKeys; // [2][rows]
  float* const decays = maxima + 2 * rows; // [rows]

  const int thread = static_cast<int>(threadIdx.x);
  const int sequence = static_cast<int>(blockIdx.x) / a.tiles;
  const int tile = static_cast<int>(blockIdx.x) - sequence * a.tiles;
  const int kv_head = static_cast<int>(blockIdx.y), split = static_cast<int>(blockIdx.z);
  if (sequence == a.sequences) { // tokens of no sequence
    if (split == 0) {
      write_zeros<T>(a, (kv_head * a.tiles + tile) * kBlock + thread, a.kv_heads * a.tiles * kBlock);
    }
    return;
  }
  const Span span(a, sequence);
  const int group = a.heads / a.kv_heads;
  const int first_row = tile * rows, row_count = span.count * group - first_row;
  if (row_count <= 0) {
    return;
  }
  const auto token_of = [&](int row) { return (first_row + row) / group; };
  const auto head_of = [&](int row) { return kv_head * group + (first_row + row) % group; };
  const int last_row = (row_count < rows ? row_count : rows) - 1;

  const Keys own_keys = keys_of(a, span, token_of(0), token_of(last_row), split, kKeys);
  const int begin = own_keys.begin, end = own_keys.end;

  const int parts = a.head_size / kEight;
  const float scale = a.scale * scale_of(a.key_scale, kv_head);
  for (int i = thread; i < rows * parts; i += kBlock) {
    const int row = i / parts, part = i - row * parts;
    float loaded[kEight] = {};
    if (row <= last_row) {
      load_eight(row_of<const T>(a.query, span.first + token_of(row), head_of(row)) + part * kEight, loaded);
    }
    float* const to = queries + part * S::kPart + row * kEight;
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      to[k] = loaded[k] * scale;
    }
  }
  if (thread < rows) {
    maxima[thread] = kNone;
  }
  __syncthreads();

  const int lane = thread % kLanes, own_key = thread / kLanes;
  // In the products with values: the thread's columns, its rows, and which of the keys.
  const int columns = a.value_size / kEight;
  const int places = columns * S::kRowGroups; // threads that a value needs
  const int key_groups = kBlock / places;
  const int place = thread % places, key_group = thread / places;
  const int column = place % columns, row_group = place / columns;
  float sums[S::kRowsOfThread] = {}, products[S::kRowsOfThread][kEight] = {};
  const C* const keys = static_cast<const C*>(a.keys.data) + kv_head * a.keys.head_stride;
  const C* const values = static_cast<const C*>(a.values.data) + kv_head * a.values.head_stride + column * kEight;
  const int32_t* const table = a.block_table + sequence * a.table_stride;
  int turn = 0;
  for (int start = begin; start < end; start += kKeys, turn ^= 1) {
    // ---- scores
    const C* from[S::kKeysOfThread];
#pragma unroll
    for (int k = 0; k < S::kKeysOfThread; ++k) {
      const int place_of_key = own_key + k * (kBlock / kLanes);
      // Threads without a key read the last one, so that the loop below has no condition.
      const int key = start + place_of_key < end ? start + place_of_key : end - 1;
      const int page = static_cast<unsigned>(key) / static_cast<unsigned>(a.block_size);
      const int64_t block = table[page], slot = key - page * a.block_size;
      DEVICE_ASSERT(
          block >= 0 && block < a.blocks && "paged_attention: a block of block_table is outside of the cache");
      from[k] = keys + block * a.keys.block_stride + slot * a.keys.slot_stride;
      if (lane == 0) {
        value_offsets[turn * kKeys + place_of_key] = block * a.values.block_stride + slot * a.values.slot_stride;
      }
    }
    float dots[S::kKeysOfThread][rows] = {};
    for (int part = lane; part < parts; part += kLanes) {
      float key[S::kKeysOfThread][kEight];
#pragma unroll
      for (int k = 0; k < S::kKeysOfThread; ++k) {
        load_eight(from[k] + part * kEight, key[k], five_bits);
      }
      const float* const query = queries + part * S::kPart;
#pragma unroll
      for (int row = 0; row < rows; ++row) {
        float elements[kEight];
        load_eight(query + row * kEight, elements);
#pragma unroll
        for (int k = 0; k < S::kKeysOfThread; ++k) {
          float dot = 0;
#pragma unroll
          for (int i = 0; i < kEight; ++i) {
            dot += elements[i] * key[k][i];
          }
          dots[k][row] += dot;
        }
      }
    }
#pragma unroll
    for (int k = 0; k < S::kKeysOfThread; ++k) {
#pragma unroll
      for (int row = 0; row < rows; ++row) {
        scores[lane * S::kLane + row * kKeys + own_key + k * (kBlock / kLanes)] = dots[k][row];
      }
    }
    __syncthreads();

    // ---- probabilities
    for (int i = thread; i < rows * kKeys; i += kBlock) {
      const int row = i / kKeys, key = start + i % kKeys;
      float score = 0;
#pragma unroll
      for (int other = 0; other < kLanes; ++other) {
        score += scores[other * S::kLane + i];
      }
      const int position = span.position(token_of(row));
      if (a.soft_cap > 0) {
        score = a.soft_cap * std::tanh(score / a.soft_cap);
      }
      if (a.slopes != nullptr) {
        score += a.slopes[head_of(row)] * static_cast<float>(key - position);
      }
      const bool visible = key < end && (!a.causal || key <= position) && (a.window <= 0 || key > position - a.window);
      scores[i] = visible ? score : kNone; // only this thread reads this element of lane 0
    }
    __syncthreads();
    {
      constexpr int threads = kBlock / rows; // of a row
      const int row = thread / threads, first = thread % threads;
      const float* const of_row = scores + row * kKeys;
      const float before = maxima[turn * rows + row];
      float maximum = before;
#pragma unroll
      for (int k = 0; k < kKeys; ++k) {
        maximum = of_row[k] > maximum ? of_row[k] : maximum;
      }
      const float base = maximum == kNone ? 0.0f : maximum; // no key is visible yet
#pragma unroll
      for (int k = first; k < kKeys; k += threads) {
        probabilities[k * rows + row] = std::exp(of_row[k] - base);
      }
      if (first == 0) {
        maxima[(turn ^ 1) * rows + row] = maximum;
        decays[row] = std::exp(before - base);
      }
    }
    __syncthreads();

    // ---- values
    if (key_group < key_groups) {
      const int own_rows = row_group * S::kRowsOfThread;
#pragma unroll
      for (int row = 0; row < S::kRowsOfThread; ++row) {
        const float decay = decays[own_rows + row];
        sums[row] *= decay;
#pragma unroll
        for (int i = 0; i < kEight; ++i) {
          products[row][i] *= decay;
        }
      }
      const int count = end - start < kKeys ? end - start : kKeys;
      const int64_t* const offsets = value_offsets + turn * kKeys;
      for (int key = key_group; key < count; key += key_groups) {
        float value[kEight];
        load_eight(values + offsets[key], value, five_bits);
        const float* const weights = probabilities + key * rows + own_rows;
#pragma unroll
        for (int row = 0; row < S::kRowsOfThread; ++row) {
          const float weight = weights[row];
          sums[row] += weight;
#pragma unroll
          for (int i = 0; i < kEight; ++i) {
            products[row][i] += weight * value[i];
          }
        }
      }
    }
  }

  // ---- the sums of the groups of keys, pair by pair
  float final_maxima[S::kRowsOfThread];
#pragma unroll
  for (int row = 0; row < S::kRowsOfThread; ++row) {
    final_maxima[row] = key_group < key_groups ? maxima[turn * rows + row_group * S::kRowsOfThread + row] : kNone;
  }
  float* const room = reinterpret_cast<float*>(attention_room);
  for (int left = key_groups; left > 1;) {
    const int half = (left + 1) / 2;
    __syncthreads();
    if (key_group >= half && key_group < left) {
      float* to = room + (key_group - half) * places + place;
#pragma unroll
      for (int row = 0; row < S::kRowsOfThread; ++row, to += kBlock / 2) {
        *to = sums[row];
#pragma unroll
        for (int i = 0; i < kEight; ++i) {
          to += kBlock / 2;
          *to = products[row][i];
        }
      }
    }
    __syncthreads();
    if (key_group + half < left) {
      const float* other = room + key_group * places + place;
#pragma unroll
      for (int row = 0; row < S::kRowsOfThread; ++row, other += kBlock / 2) {
        sums[row] += *other;
#pragma unroll
        for (int i = 0; i < kEight; ++i) {
          other += kBlock / 2;
          products[row][i] += *other;
        }
      }
    }
    left = half;
  }
  if (key_group != 0) {
    return;
  }
  const float value_scale = scale_of(a.value_scale, kv_head);
#pragma unroll
  for (int k = 0; k < S::kRowsOfThread; ++k) {
    const int row = row_group * S::kRowsOfThread + k;
    if (row > last_row) {
      break;
    }
    const int64_t token = span.first + token_of(row);
    const int head = head_of(row);
    float result[kEight];
    const float factor = a.splits > 1 ? 1.0f : factor_of(a, head, final_maxima[k], sums[k]) * value_scale;
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      result[i] = products[k][i] * factor;
    }
    if (a.splits == 1) {
      store_some(row_of<T>(a.out, token, head) + column * kEight, result);
    } else {
      const int64_t to = (int64_t(split) * a.tokens + token) * a.heads + head;
      store_some(a.partial + to * a.value_size + column * kEight, result);
      if (column == 0) {
        a.maxima[to] = final_maxima[k];
        a.sums[to] = sums[k];
      }
    }
  }
}

// Combines the results of the blocks that share the keys of a row.
template <typename T>
void combine(const Attention& a, musaStream_t stream) {
  const int columns = a.value_size / kEight;
  const int64_t rows = int64_t(a.tokens) * a.heads;
  for_each(rows * columns, stream, [=] __device__(int64_t i) {
    const int64_t column = take(i, columns), row = i, head = take(i, a.heads), token = i;
    if (token >= a.query_starts[a.sequences]) {
      return; // a token of no sequence, which the first kernel has set to 0
    }
    float maximum = kNone;
    for (int split = 0; split < a.splits; ++split) {
      const float other = a.maxima[split * rows + row];
      maximum = other > maximum ? other : maximum;
    }
    float sum = 0, result[kEight] = {};
    for (int split = 0; split < a.splits; ++split) {
      if (const float part_sum = a.sums[split * rows + row]; part_sum != 0) {
        const float weight = std::exp(a.maxima[split * rows + row] - maximum);
        float part[kEight];
        load_eight(a.partial + (split * rows + row) * a.value_size + column * kEight, part);
        sum += weight * part_sum;
#pragma unroll
        for (int k = 0; k < kEight; ++k) {
          result[k] += weight * part[k];
        }
      }
    }
    const float factor = factor_of(a, static_cast<int>(head), maximum, sum) *
        scale_of(a.value_scale, static_cast<int>(head) / (a.heads / a.kv_heads));
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      result[k] *= factor;
    }
    store_some(row_of<T>(a.out, token, head) + column * kEight, result);
  });
}

template <typename T, typename C>
void attend_tiles(const Attention& a, bool five_bits, musaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((a.sequences + 1) * a.tiles), a.kv_heads, a.splits);
  switch (a.rows) {
    case 4: attend_kernel<T, C, 4><<<grid, kBlock, shared_bytes<4>(a.head_size), stream>>>(a, five_bits); break;
    case 8: attend_kernel<T, C, 8><<<grid, kBlock, shared_bytes<8>(a.head_size), stream>>>(a, five_bits); break;
    default: attend_kernel<T, C, 16><<<grid, kBlock, shared_bytes<16>(a.head_size), stream>>>(a, five_bits);
  }
}

} // namespace

int rows_of_tile(int64_t rows, int head_size, int value_size, size_t memory) {
  if (rows > 8 && fits<16>(head_size, value_size, memory)) {
    return 16;
  }
  if (rows > 4 && fits<8>(head_size, value_size, memory)) {
    return 8;
  }
  return fits<4>(head_size, value_size, memory) ? 4 : 0;
}

void attend(const Attention& a, Dtype dtype, CacheDtype cache_dtype, musaStream_t stream) {
  with_type(dtype, [&]<typename T>() {
    if (a.few_rows) {
      attend_few_rows(a, dtype, cache_dtype, stream);
    } else if (cache_dtype == CacheDtype::kSame) {
      attend_tiles<T, T>(a, false, stream);
    } else {
      attend_tiles<T, Float8>(a, cache_dtype == CacheDtype::kFloat8E5M2, stream);
    }
    if (a.splits > 1) {
      combine<T>(a, stream);
    }
  });
}

} // namespace musa_ops_serving
