// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Mixtures of experts: the choice of each token's experts, and the order of the rows by expert.
#include "kernels/launch.h"
#include "kernels/numbers.muh"

namespace musa_ops_serving {
namespace {

// How many numbers precede number `own` in descending order. The earlier one of equal numbers is first.
__device__ inline int rank_of(const float* numbers, int count, int own) {
  const float value = numbers[own];
  int rank = 0;
  for (int i = 0; i < count; ++i) {
    rank += (numbers[i] > value || (numbers[i] == value && i < own)) ? 1 : 0;
  }
  return rank;
}

// A block routes one token. An expert's place among the chosen is the number of better ones, so that no thread waits for the
// choice of another.
template <typename T>
__global__ void __launch_bounds__(kThreads) route_kernel(const Routing r) {
  extern __shared__ __align__(16) unsigned char route_room[];
  float* const probabilities = reinterpret_cast<float*>(route_room);
  float* const choices = probabilities + r.count;
  float* const candidates = choices + r.count;
  float* const group_scores = candidates + r.count;
  float* const chosen = group_scores + r.groups;
  const int64_t token = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x), step = static_cast<int>(blockDim.x);
  const T* const scores = static_cast<const T*>(r.scores) + token * r.row_stride;
  if (r.softmax) {
    for (int e = thread; e < r.count; e += step) {
      candidates[e] = wide(scores[e]);
    }
    __syncthreads();
    float maximum = -INFINITY, sum = 0;
    for (int e = 0; e < r.count; ++e) {
      maximum = candidates[e] > maximum ? candidates[e] : maximum;
    }
    for (int e = thread; e < r.count; e += step) {
      choices[e] = std::exp(candidates[e] - maximum);
    }
    __syncthreads();
    for (int e = 0; e < r.count; ++e) {
      sum += choices[e];
    }
    for (int e = thread; e < r.count; e += step) {
      probabilities[e] = choices[e] / sum;
    }
    __syncthreads(); // before `choices` is overwritten
  } else {
    for (int e = thread; e < r.count; e += step) {
      probabilities[e] = 1.0f / (1.0f + std::exp(-wide(scores[e])));
    }
  }
  for (int e = thread; e < r.count; e += step) { // the thread's own probabilities
    const float choice = probabilities[e] + (r.bias != nullptr ? r.bias[e] : 0.0f);
    choices[e] = choice == choice ? choice : -INFINITY; // each expert has a rank, also with NaN
  }
  __syncthreads();
  const int size = r.count / r.groups;
  for (int g = thread; g < r.groups; g += step) {
    // With a bias the sum of the group's two best, otherwise its best.
    float best = -INFINITY, second = -INFINITY;
    for (int e = g * size; e < (g + 1) * size; ++e) {
      const float choice = choices[e];
      second = choice > best ? best : choice > second ? choice : second;
      best = choice > best ? choice : best;
    }
    group_scores[g] = r.bias != nullptr && size > 1 ? best + second : best;
  }
  __syncthreads();
  for (int e = thread; e < r.count; e += step) {
    const bool kept = r.top_groups == r.groups || rank_of(group_scores, r.groups, e / size) < r.top_groups;
    candidates[e] = kept ? choices[e] : -INFINITY;
  }
  __syncthreads();
  for (int e = thread; e < r.count; e += step) {
    if (const int rank = rank_of(candidates, r.count, e); rank < r.k) {
      chosen[rank] = probabilities[e];
      r.experts[token * r.k + rank] = e;
    }
  }
  __syncthreads();
  float factor = r.scale;
  if (r.renormalize) {
    float sum = 0;
    for (int k = 0; k < r.k; ++k) {
      sum += chosen[k];
    }
    factor /= sum;
  }
  for (int k = thread; k < r.k; k += step) {
    r.weights[token * r.k + k] = chosen[k] * factor;
  }
}

// The bin of a row: its expert, or the last bin.
__device__ inline int bin_of(const Grouping& g, int64_t row) {
  const int64_t expert = integer(g.experts, row);
  DEVICE_ASSERT(expert < g.count && "moe_group: an expert is not below expert_count");
  return expert < 0 ? g.count : static_cast<int>(expert);
}

__global__ void __launch_bounds__(kGroupedRows) count_kernel(const Grouping g) {
  __shared__ int bins[kGroupedRows];
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t row = int64_t(blockIdx.x) * kGroupedRows + thread;
  bins[thread] = row < g.rows ? bin_of(g, row) : -1;
  __syncthreads();
  for (int bin = thread; bin <= g.count; bin += kGroupedRows) {
    int count = 0;
    for (int i = 0; i < kGroupedRows; ++i) {
      count += bins[i] == bin ? 1 : 0;
    }
    g.counts[int64_t(blockIdx.x) * (g.count + 1) + bin] = count;
  }
}

// Replaces counts of blocks by the sums of the blocks before, and finds the first row of each bin. One block.
__global__ void __launch_bounds__(kThreads) scan_kernel(const Grouping g, const int64_t blocks) {
  extern __shared__ int32_t scan_totals[];
  for (int bin = static_cast<int>(threadIdx.x); bin <= g.count; bin += kThreads) {
    int sum = 0;
    for (int64_t block = 0; block < blocks; ++block) {
      int32_t& place = g.counts[block * (g.count + 1) + bin];
      const int count = place;
      place = sum;
      sum += count;
    }
    scan_totals[bin] = sum;
  }
  __syncthreads();
  for (int bin = static_cast<int>(threadIdx.x); bin <= g.count; bin += kThreads) {
    int start = 0;
    for (int before = 0; before < bin; ++before) {
      start += scan_totals[before];
    }
    g.starts[bin] = start;
    if (bin < g.count) {
      g.offsets[bin] = start + scan_totals[bin];
    }
  }
}

__global__ void __launch_bounds__(kGroupedRows) order_kernel(const Grouping g) {
  __shared__ int bins[kGroupedRows];
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t row = int64_t(blockIdx.x) * kGroupedRows + thread;
  bins[thread] = row < g.rows ? bin_of(g, row) : -1;
  __syncthreads();
  if (row < g.rows) {
    const int bin = bins[thread];
    int before = 0; // rows of this block with the same expert
    for (int i = 0; i < thread; ++i) {
      before += bins[i] == bin ? 1 : 0;
    }
    g.order[g.starts[bin] + g.counts[int64_t(blockIdx.x) * (g.count + 1) + bin] + before] = row;
  }
}

} // namespace

void route(const Routing& r, Dtype dtype, musaStream_t stream) {
  const size_t floats = 3 * static_cast<size_t>(r.count) + r.groups + r.k;
  int threads = 32;
  while (threads < kThreads && threads < r.count) {
    threads *= 2;
  }
  with_type(dtype, [&]<typename T>() {
    route_kernel<T><<<static_cast<unsigned>(r.tokens), threads, floats * sizeof(float), stream>>>(r);
  });
}

void group_rows(const Grouping& g, musaStream_t stream) {
  const int64_t blocks = (g.rows + kGroupedRows - 1) / kGroupedRows;
  if (blocks > 0) {
    count_kernel<<<static_cast<unsigned>(blocks), kGroupedRows, 0, stream>>>(g);
  }
  scan_kernel<<<1, kThreads, (static_cast<size_t>(g.count) + 1) * sizeof(int32_t), stream>>>(g, blocks);
  if (blocks > 0) {
    order_kernel<<<static_cast<unsigned>(blocks), kGroupedRows, 0, stream>>>(g);
  }
}

} // namespace musa_ops_serving
