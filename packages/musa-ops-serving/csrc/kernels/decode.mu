// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Attention of up to eight rows (pairs of a new token and a head) for each sequence and key head, as in decoding, where the time
// is that of reading the cache.
//
// A few lanes share a key, each with a part of its elements, and proceed in steps of several adjacent keys, without a barrier of the
// block. The registers of a key or a value are loaded for the next step as soon as they have been used, and the number of the block of
// the cache is loaded one step earlier. The lanes exchange parts of the scores so that each has the sums of one or more scores of
// one row, and computes the softmax for these alone; all probabilities then pass through shared memory. Each group of lanes has a
// maximum of its own until the end, where the groups' sums are combined.
#include "kernels/attention.muh"

namespace musa_ops_serving {
namespace {

constexpr int kBlock = kAttentionThreads;
constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kWarp = 32; // lanes that exchange numbers; warps of 128 threads are four of these
constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;

// `size`: the largest head size.
template <typename C, int rows, int size>
struct Few {
  static constexpr int kVectors = size == 64 || rows == 8 || sizeof(C) == 4 ? 1 : 2; // of eight elements for each lane
  static constexpr int kElements = kVectors * kEight;
  static constexpr int kLanes = size / kElements;
  static constexpr int kGroups = kBlock / kLanes;
  static constexpr int kKeysOfGroup = 4;
  static constexpr int kKeys = kGroups * kKeysOfGroup; // of a step
  static constexpr int kScores = rows * kKeysOfGroup; // of a group in a step
  static constexpr int kOwnScores = kScores / kLanes; // of a lane
  static constexpr int kLanesOfRow = kLanes / rows;
  static constexpr int kGroupsOfWarp = kWarp / kLanes;
  static constexpr int kSums = rows * kElements / kGroupsOfWarp; // of a lane, after the exchange between groups
  // Floats of shared memory, in this order.
  static constexpr int kQuery = rows * size;
  static constexpr int kShared = (kKeysOfGroup + 1) * rows; // of a group: probabilities and decays; two turns
  static constexpr int kStatistics = 2 * kGroups * rows + 2 * rows;
  static constexpr int kStep = kQuery + 2 * kGroups * kShared;
  static constexpr int kEnd = kStatistics + kGroups * rows + kBlock / kWarp * rows * size;
  static constexpr size_t kBytes = sizeof(float) * (kStep > kEnd ? kStep : kEnd);
  static_assert(kOwnScores >= 1 && kLanesOfRow >= 1 && kLanes <= kWarp && kSums >= 1);
};

// Eight adjacent elements of a cache as 32-bit words, which the compiler keeps in as many registers.
template <typename C>
struct alignas(sizeof(C) * kEight < 16 ? sizeof(C) * kEight : 16) Words {
  uint32_t words[sizeof(C) * kEight / 4];
};

template <typename C>
__device__ inline void widen(const Words<C>& from, float (&to)[kEight], bool five_bits) {
  constexpr int count = 4 / sizeof(C); // elements of a word
#pragma unroll
  for (int word = 0; word < kEight / count; ++word) {
    const Vector<C, count> elements = __builtin_bit_cast(Vector<C, count>, from.words[word]);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      to[word * count + i] = wide(elements.values[i], five_bits);
    }
  }
}

// Adds `values` over the lanes whose numbers differ in the bits from `lowest` to `highest`, and leaves each with its share of
// the sums in the first places: the share's number is these bits of the lane.
template <int highest, int lowest, int count, int all>
__device__ inline void exchange_sums(float (&values)[all], int lane) {
  if constexpr (highest >= lowest) {
    constexpr int half = count / 2;
    const bool upper = (lane & highest) != 0;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const float kept = upper ? values[i + half] : values[i];
      const float given = upper ? values[i] : values[i + half];
      values[i] = kept + __shfl_xor_sync(kAllLanes, given, highest);
    }
    exchange_sums<highest / 2, lowest, half>(values, lane);
  }
}

// 2 to the power of a score relative to a maximum of the same kind; 0 for none, also if there is no score at all.
__device__ inline float relative(float score, float maximum) {
  return std::exp2(score - (maximum == kNone ? 0.0f : maximum));
}

template <typename T, typename C, int rows, int size>
__global__ void __launch_bounds__(kBlock, kResidentBlocks) decode_kernel(const Attention a, const bool five_bits) {
  using F = Few<C, rows, size>;
  constexpr int kLanes = F::kLanes, kVectors = F::kVectors, kElements = F::kElements, kKeysOfGroup = F::kKeysOfGroup;
  extern __shared__ __align__(16) float decode_room[];
  float* const queries = decode_room; // [kVectors][2][rows][kLanes][4]
  float* const shared = queries + F::kQuery; // [2][kGroups][kKeysOfGroup + 1][rows]

  const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes, group = thread / kLanes;
  const int sequence = static_cast<int>(blockIdx.x), kv_head = static_cast<int>(blockIdx.y);
  const int split = static_cast<int>(blockIdx.z);
  if (sequence == a.sequences) { // tokens of no sequence
    if (split == 0) {
      write_zeros<T>(a, kv_head * kBlock + thread, a.kv_heads * kBlock);
    }
    return;
  }
  const Span span(a, sequence);
  const int heads = a.heads / a.kv_heads, row_count = span.count * heads;
  if (row_count <= 0) {
    return;
  }
  const auto token_of = [&](int row) { return row / heads; };
  const auto head_of = [&](int row) { return kv_head * heads + row % heads; };

  const Keys own_keys = keys_of(a, span, 0, token_of(row_count - 1), split, F::kKeys);
  const int begin = own_keys.begin, end = own_keys.end;

  const int parts = a.head_size / kEight;
  const float scale = a.scale * scale_of(a.key_scale, kv_head);
  for (int i = thread; i < rows * kLanes * kVectors; i += kBlock) {
    const int row = i / (kLanes * kVectors), part = i % (kLanes * kVectors);
    float loaded[kEight] = {};
    if (row < row_count && part < parts) {
      load_eight(row_of<const T>(a.query, span.first + token_of(row), head_of(row)) + part * kEight, loaded);
    }
    float* const to = queries + ((part / kLanes * 2 * rows + row) * kLanes + part % kLanes) * 4;
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      to[k / 4 * rows * kLanes * 4 + k % 4] = loaded[k] * scale;
    }
  }
  __syncthreads();

  // The row of the lane's scores, and the first of its keys among those of the group.
  const int own_row = lane / F::kLanesOfRow, own_key = lane % F::kLanesOfRow * F::kOwnScores;
  const bool has_row = own_row < row_count;
  const int position = has_row ? span.position(token_of(own_row)) : 0;
  int first_visible = has_row && a.window > 0 ? position - a.window + 1 : 0;
  first_visible = first_visible > begin ? first_visible : begin;
  int end_visible = !has_row ? 0 : a.causal ? position + 1 : span.length;
  end_visible = end_visible < end ? end_visible : end;
  const float slope = has_row && a.slopes != nullptr ? a.slopes[head_of(own_row)] : 0.0f;

  const C* const keys = static_cast<const C*>(a.keys.data) + kv_head * a.keys.head_stride;
  const C* const values = static_cast<const C*>(a.values.data) + kv_head * a.values.head_stride;
  const int32_t* const table = a.block_table + sequence * a.table_stride;
  // The lane's parts of a key and a value. A lane without one loads another, which its query of zeros does not count.
  int own_parts[kVectors];
#pragma unroll
  for (int vector = 0; vector < kVectors; ++vector) {
    const int part = lane + vector * kLanes;
    own_parts[vector] = (part < parts ? part : parts - 1) * kEight;
  }
  // The first key of the group in a step, which is a multiple of kKeysOfGroup, as the number of keys of a block. A group without a
  // key loads the last ones.
  const auto first_key = [&](int start) {
    const int key = start + group * kKeysOfGroup;
    return key < end ? key : (end - 1) / kKeysOfGroup * kKeysOfGroup;
  };
  const auto block_of = [&](int start) {
    return table[static_cast<unsigned>(first_key(start)) / static_cast<unsigned>(a.block_size)];
  };
  // Where the group's keys of a step are. Of adjacent keys, those up to `most` are loaded: numbers after them in the block may be
  // unwritten, and those before `begin` are keys of the sequence.
  const C *key_from = nullptr, *value_from = nullptr;
  int most = 0;
  const auto find = [&](int start, int64_t block) {
    DEVICE_ASSERT(block >= 0 && block < a.blocks && "paged_attention: a block of block_table is outside of the cache");
    const int key = first_key(start);
    const int slot = static_cast<unsigned>(key) % static_cast<unsigned>(a.block_size);
    key_from = keys + block * a.keys.block_stride + slot * a.keys.slot_stride;
    value_from = values + block * a.values.block_stride + slot * a.values.slot_stride;
    most = end - 1 - key;
  };
  const auto load = [&](Words<C>& to, const C* from, const Cache& cache, int k, int vector) {
    const int near = k < most ? k : most;
    to = *reinterpret_cast<const Words<C>*>(from + near * cache.slot_stride + own_parts[vector]);
  };

  float maximum = kNone, sum = 0; // of the lane's row: all keys of the group, and the lane's keys
  float products[rows][kElements] = {};
  Words<C> key[kKeysOfGroup][kVectors] = {}, value[kKeysOfGroup][kVectors] = {};
  int start = begin / kKeysOfGroup * kKeysOfGroup;
  int64_t next_block = 0;
  if (begin < end) {
    find(start, block_of(start));
#pragma unroll
    for (int k = 0; k < kKeysOfGroup; ++k) {
#pragma unroll
      for (int vector = 0; vector < kVectors; ++vector) {
        load(key[k][vector], key_from, a.keys, k, vector);
        load(value[k][vector], value_from, a.values, k, vector);
      }
    }
    next_block = block_of(start + F::kKeys);
  }
  for (int turn = 0; start < end; start += F::kKeys, turn ^= 1) {
    const bool more = start + F::kKeys < end;
    if (more) {
      find(start + F::kKeys, next_block);
      next_block = block_of(start + 2 * F::kKeys);
    }
    // ---- scores
    float scores[F::kScores] = {}; // [rows][kKeysOfGroup]
#pragma unroll
    for (int vector = 0; vector < kVectors; ++vector) {
      float query[rows][kEight];
#pragma unroll
      for (int row = 0; row < rows; ++row) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float some[4];
          load_some(queries + (((vector * 2 + half) * rows + row) * kLanes + lane) * 4, some);
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            query[row][half * 4 + i] = some[i];
          }
        }
      }
#pragma unroll
      for (int k = 0; k < kKeysOfGroup; ++k) {
        float elements[kEight];
        widen(key[k][vector], elements, five_bits);
        if (more) {
          load(key[k][vector], key_from, a.keys, k, vector);
        }
#pragma unroll
        for (int i = 0; i < kEight; ++i) {
#pragma unroll
          for (int row = 0; row < rows; ++row) {
            scores[row * kKeysOfGroup + k] += query[row][i] * elements[i];
          }
        }
      }
    }
    const int own = start + group * kKeysOfGroup + own_key;
    exchange_sums<kLanes / 2, 1, F::kScores>(scores, lane);

    // ---- probabilities of the lane's scores
    float greatest = maximum;
#pragma unroll
    for (int i = 0; i < F::kOwnScores; ++i) {
      float score = scores[i];
      if (a.soft_cap > 0) {
        score = a.soft_cap * std::tanh(score / a.soft_cap);
      }
      score += slope * static_cast<float>(own + i - position);
      const bool visible = own + i >= first_visible && own + i < end_visible;
      scores[i] = visible ? score * kLog2E : kNone;
      greatest = scores[i] > greatest ? scores[i] : greatest;
    }
#pragma unroll
    for (int bit = 1; bit < F::kLanesOfRow; bit *= 2) {
      const float other = __shfl_xor_sync(kAllLanes, greatest, bit);
      greatest = other > greatest ? other : greatest;
    }
    const float decay = relative(maximum, greatest);
    maximum = greatest;
    sum *= decay;
    float* const of_group = shared + (turn * F::kGroups + group) * F::kShared;
#pragma unroll
    for (int i = 0; i < F::kOwnScores; ++i) {
      const float probability = relative(scores[i], maximum);
      sum += probability;
      of_group[(own_key + i) * rows + own_row] = probability;
    }
    if (own_key == 0) {
      of_group[kKeysOfGroup * rows + own_row] = decay;
    }
    // The next turn uses other memory, so one barrier of the lanes suffices.
    __syncwarp();

    // ---- values
    float decays[rows];
    load_some(of_group + kKeysOfGroup * rows, decays);
    bool grown = false;
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      grown = grown || decays[row] != 1.0f;
    }
    if (grown) {
#pragma unroll
      for (int row = 0; row < rows; ++row) {
#pragma unroll
        for (int i = 0; i < kElements; ++i) {
          products[row][i] *= decays[row];
        }
      }
    }
#pragma unroll
    for (int k = 0; k < kKeysOfGroup; ++k) {
      float weights[rows];
      load_some(of_group + k * rows, weights);
#pragma unroll
      for (int vector = 0; vector < kVectors; ++vector) {
        float elements[kEight];
        widen(value[k][vector], elements, five_bits);
        if (more) {
          load(value[k][vector], value_from, a.values, k, vector);
        }
#pragma unroll
        for (int i = 0; i < kEight; ++i) {
#pragma unroll
          for (int row = 0; row < rows; ++row) {
            products[row][vector * kEight + i] += weights[row] * elements[i];
          }
        }
      }
    }
  }

  // ---- the maxima and the sums of all groups
#pragma unroll
  for (int bit = 1; bit < F::kLanesOfRow; bit *= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, bit);
  }
  __syncthreads();
  float* const maxima = decode_room; // [kGroups][rows]
  float* const sums = maxima + F::kGroups * rows; // [kGroups][rows]
  float* const row_maxima = sums + F::kGroups * rows; // [rows]
  float* const row_sums = row_maxima + rows; // [rows]
  float* const factors = row_sums + rows; // [kGroups][rows]
  float* const totals = factors + F::kGroups * rows; // [warps][rows][size]
  if (own_key == 0) {
    maxima[group * rows + own_row] = maximum;
    sums[group * rows + own_row] = sum;
  }
  __syncthreads();
  float row_maximum = kNone, row_sum = 0;
  for (int other = 0; other < F::kGroups; ++other) {
    const float one = maxima[other * rows + own_row];
    row_maximum = one > row_maximum ? one : row_maximum;
  }
  if (own_key == 0) {
    factors[group * rows + own_row] = relative(maximum, row_maximum);
    if (group == 0) {
      for (int other = 0; other < F::kGroups; ++other) {
        row_sum += sums[other * rows + own_row] * relative(maxima[other * rows + own_row], row_maximum);
      }
      row_maxima[own_row] = row_maximum * kLn2;
      row_sums[own_row] = row_sum;
    }
  }
  __syncthreads();

  // ---- the products of all groups: those of a warp by exchange, then through shared memory
  float combined[rows * kElements];
#pragma unroll
  for (int row = 0; row < rows; ++row) {
    const float factor = factors[group * rows + row];
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      combined[row * kElements + i] = products[row][i] * factor;
    }
  }
  exchange_sums<kWarp / 2, kLanes, rows * kElements>(combined, thread % kWarp);
  const int first_sum = thread % kWarp / kLanes * F::kSums;
  float* const of_warp = totals + thread / kWarp * rows * size;
#pragma unroll
  for (int i = 0; i < F::kSums; ++i) {
    const int row = (first_sum + i) / kElements, element = (first_sum + i) % kElements;
    of_warp[row * size + (element / kEight * kLanes + lane) * kEight + element % kEight] = combined[i];
  }
  __syncthreads();
  const float value_scale = scale_of(a.value_scale, kv_head);
  for (int i = thread; i < row_count * parts; i += kBlock) {
    const int row = i / parts, part = i - row * parts;
    const int64_t token = span.first + token_of(row);
    const int head = head_of(row);
    const float factor = a.splits > 1 ? 1.0f : factor_of(a, head, row_maxima[row], row_sums[row]) * value_scale;
    float result[kEight] = {};
#pragma unroll
    for (int warp = 0; warp < kBlock / kWarp; ++warp) {
      float some[kEight];
      load_eight(totals + (warp * rows + row) * size + part * kEight, some);
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        result[k] += some[k] * factor;
      }
    }
    if (a.splits == 1) {
      store_some(row_of<T>(a.out, token, head) + part * kEight, result);
    } else {
      const int64_t to = (int64_t(split) * a.tokens + token) * a.heads + head;
      store_some(a.partial + to * a.value_size + part * kEight, result);
      if (part == 0) {
        a.maxima[to] = row_maxima[row];
        a.sums[to] = row_sums[row];
      }
    }
  }
}

// Calls body.template operator()<rows, size>() with the sizes of the kernel that serves these.
template <typename Body>
auto with_sizes(int rows, int head_size, const Body& body) {
  const auto with_rows = [&]<int size>() {
    return rows > 4 ? body.template operator()<8, size>() : body.template operator()<4, size>();
  };
  return head_size <= 64 ? with_rows.template operator()<64>()
      : head_size <= 128 ? with_rows.template operator()<128>()
                         : with_rows.template operator()<256>();
}

} // namespace

bool has_few_rows(const Attention& a, int64_t rows, Dtype dtype, CacheDtype cache_dtype, size_t memory) {
  const int most_size = dtype == Dtype::kFloat32 ? 128 : 256;
  if (rows > kMostFewRows || a.head_size != a.value_size || a.head_size > most_size || a.block_size % 4 != 0 ||
      (dtype == Dtype::kFloat32 && cache_dtype != CacheDtype::kSame)) {
    return false;
  }
  return with_sizes(static_cast<int>(rows), a.head_size, [&]<int kRows, int kSize>() {
    return Few<uint16_t, kRows, kSize>::kBytes <= memory;
  });
}

void attend_few_rows(const Attention& a, Dtype dtype, CacheDtype cache_dtype, musaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(a.sequences + 1), a.kv_heads, a.splits);
  const auto launch = [&]<typename T, typename C>() {
    with_sizes(a.rows, a.head_size, [&]<int rows, int size>() {
      if constexpr (sizeof(C) < 4 || size <= 128) {
        decode_kernel<T, C, rows, size>
            <<<grid, kBlock, Few<C, rows, size>::kBytes, stream>>>(a, cache_dtype == CacheDtype::kFloat8E5M2);
      }
    });
  };
  with_type(dtype, [&]<typename T>() {
    if constexpr (sizeof(T) == 4) {
      launch.template operator()<T, T>();
    } else if (cache_dtype == CacheDtype::kSame) {
      launch.template operator()<T, T>();
    } else {
      launch.template operator()<T, Float8>();
    }
  });
}

} // namespace musa_ops_serving
