// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Products of tokens with the low-rank matrices of their adapters. A token with a negative adapter has none.
#include "kernels/launch.h"
#include "kernels/numbers.muh"

namespace musa_ops_serving {
namespace {

constexpr int kShare = 32;                   // threads that share a dot product, whatever the size of a warp
constexpr int kRanks = 4;                    // dot products of a thread, for one load of the input
constexpr int kGroups = 4;                   // of threads in a block
constexpr int kTile = kRanks * kGroups;      // ranks of a block
constexpr int kShrinkThreads = kShare * kGroups;

__device__ inline int64_t adapter_of(const Lora& l, int64_t token) {
  const int64_t adapter = integer(l.adapters, token);
  DEVICE_ASSERT(adapter < l.adapter_count && "lora: an adapter of adapter_of_token is outside of the weights");
  return adapter;
}

template <typename T, int count>
__global__ void __launch_bounds__(kShrinkThreads) shrink_kernel(const Lora l, const int tiles) {
  __shared__ float partial[kTile][kShare + 1];
  const int64_t token = blockIdx.x / tiles;
  const int first = static_cast<int>(blockIdx.x - token * tiles) * kTile, thread = static_cast<int>(threadIdx.x);
  float* const out = static_cast<float*>(l.out) + token * l.out_stride;
  const int64_t adapter = adapter_of(l, token);
  if (adapter < 0) {
    if (thread < kTile && first + thread < l.outer) {
      out[first + thread] = 0;
    }
    return;
  }
  const int lane = thread % kShare, group = thread / kShare;
  const T* const input = static_cast<const T*>(l.input) + token * l.input_stride;
  const T* const weights = static_cast<const T*>(l.weights) + adapter * l.outer * l.inner;
  const T* rows[kRanks];
#pragma unroll
  for (int k = 0; k < kRanks; ++k) {
    // Threads without a rank read the last one, so that the loop has no condition.
    const int rank = first + group * kRanks + k;
    rows[k] = weights + int64_t(rank < l.outer ? rank : l.outer - 1) * l.inner;
  }
  float sums[kRanks] = {};
  for (int at = lane * count; at < l.inner; at += kShare * count) {
    float values[count];
    load_some(input + at, values);
#pragma unroll
    for (int k = 0; k < kRanks; ++k) {
      float weight[count];
      load_some(rows[k] + at, weight);
#pragma unroll
      for (int i = 0; i < count; ++i) {
        sums[k] += values[i] * weight[i];
      }
    }
  }
#pragma unroll
  for (int k = 0; k < kRanks; ++k) {
    partial[group * kRanks + k][lane] = sums[k];
  }
  __syncthreads();
  if (thread < kTile && first + thread < l.outer) {
    float sum = 0;
    for (int i = 0; i < kShare; ++i) {
      sum += partial[thread][i];
    }
    out[first + thread] = sum * l.scale;
  }
}

// A thread has an element of the output.
template <typename T, typename I, int count>
void expand(const Lora& l, musaStream_t stream) {
  for_each(l.tokens * l.outer, stream, [=] __device__(int64_t i) {
    const int64_t at = take(i, l.outer), adapter = adapter_of(l, i);
    if (adapter < 0) {
      return;
    }
    const I* const input = static_cast<const I*>(l.input) + i * l.input_stride;
    const T* const weights = static_cast<const T*>(l.weights) + (adapter * l.outer + at) * l.inner;
    float sum = 0;
    for (int k = 0; k < l.inner; k += count) {
      float values[count], weight[count];
      load_some(input + k, values);
      load_some(weights + k, weight);
#pragma unroll
      for (int j = 0; j < count; ++j) {
        sum += values[j] * weight[j];
      }
    }
    T* const place = static_cast<T*>(l.out) + i * l.out_stride + at;
    store(place, wide(*place) + sum);
  });
}

template <typename T, int count>
void shrink(const Lora& l, musaStream_t stream) {
  const int tiles = (l.outer + kTile - 1) / kTile;
  shrink_kernel<T, count><<<static_cast<unsigned>(l.tokens * tiles), kShrinkThreads, 0, stream>>>(l, tiles);
}

} // namespace

void lora_shrink_rows(const Lora& lora, Dtype dtype, musaStream_t stream) {
  with_type(dtype, [&]<typename T>() {
    if (lora.aligned) {
      shrink<T, kEight>(lora, stream);
    } else {
      shrink<T, 1>(lora, stream);
    }
  });
}

void lora_expand_rows(const Lora& lora, Dtype dtype, musaStream_t stream) {
  with_type(dtype, [&]<typename T>() {
    if (lora.float_input) {
      if (lora.aligned) {
        expand<T, float, kEight>(lora, stream);
      } else {
        expand<T, float, 1>(lora, stream);
      }
    } else if (lora.aligned) {
      expand<T, T, kEight>(lora, stream);
    } else {
      expand<T, T, 1>(lora, stream);
    }
  });
}

} // namespace musa_ops_serving
