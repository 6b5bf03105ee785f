// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Root mean square norm of rows, also of the sum with a residual. A block has one long row or several short ones.
#include "kernels/launch.h"
#include "kernels/numbers.muh"

namespace musa_ops_serving {
namespace {

constexpr int kKept = 4; // vectors of a thread that stay in registers

// Sums the values of `threads` adjacent threads, a power of two; each of them gets the sum. All threads of the block call it.
__device__ inline float sum_of_row(float value, int threads) {
  constexpr int kSome = 16;
  __shared__ float values[kThreads], partial[kThreads];
  const int thread = static_cast<int>(threadIdx.x), place = thread % threads, row = thread - place;
  values[thread] = value;
  __syncthreads();
  const float* from = values;
  int count = threads;
  if (threads > kSome) {
    if (place < kSome) {
      float sum = 0;
      for (int i = place; i < threads; i += kSome) {
        sum += values[row + i];
      }
      partial[thread] = sum;
    }
    __syncthreads();
    from = partial;
    count = kSome;
  }
  float sum = 0;
  for (int i = 0; i < count; ++i) {
    sum += from[row + i];
  }
  return sum;
}

// `threads` threads have a row; `count` elements are loaded together.
template <typename T, int count>
__global__ void __launch_bounds__(kThreads) norm_kernel(const RmsNorm n, const int threads) {
  const int64_t own = int64_t(blockIdx.x) * (kThreads / threads) + threadIdx.x / threads;
  const bool inside = own < n.tokens * n.heads;
  const int64_t row = inside ? own : 0;
  const int64_t token = quotient(row, n.heads), head = row - token * n.heads;
  const T* const input = row_of<const T>(n.input, token, head);
  const bool adds = n.residual.data != nullptr;
  const T* const residual = adds ? row_of<const T>(n.residual, token, head) : nullptr;
  T* const sums = adds ? row_of<T>(n.residual_out, token, head) : nullptr;
  T* const out = row_of<T>(n.out, token, head);
  const T* const weight = static_cast<const T*>(n.weight);
  const int first = static_cast<int>(threadIdx.x) % threads, vectors = inside ? n.size / count : 0;

  const auto load = [&](int vector, float (&values)[count]) {
    load_some(input + vector * count, values);
    if (adds) {
      float added[count];
      load_some(residual + vector * count, added);
#pragma unroll
      for (int i = 0; i < count; ++i) {
        values[i] = wide(narrow<T>(values[i] + added[i], false)); // the number that the residual holds
      }
    }
  };
  float squares = 0, kept[kKept][count];
  const auto add = [&](int vector, float (&values)[count]) {
    load(vector, values);
    if (adds) {
      store_some(sums + vector * count, values);
    }
#pragma unroll
    for (int i = 0; i < count; ++i) {
      squares += values[i] * values[i];
    }
  };
#pragma unroll
  for (int k = 0; k < kKept; ++k) {
    if (const int vector = first + k * threads; vector < vectors) {
      add(vector, kept[k]);
    }
  }
  for (int vector = first + kKept * threads; vector < vectors; vector += threads) {
    float values[count];
    add(vector, values);
  }
  const float factor = 1.0f / std::sqrt(sum_of_row(squares, threads) / static_cast<float>(n.size) + n.epsilon);
  const auto write = [&](int vector, float (&values)[count]) {
    float weights[count];
    load_some(weight + vector * count, weights);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      values[i] *= factor * weights[i];
    }
    store_some(out + vector * count, values);
  };
#pragma unroll
  for (int k = 0; k < kKept; ++k) {
    if (const int vector = first + k * threads; vector < vectors) {
      write(vector, kept[k]);
    }
  }
  for (int vector = first + kKept * threads; vector < vectors; vector += threads) {
    float values[count];
    if (adds) { // in place, the input and the residual are overwritten by now
      load_some(sums + vector * count, values);
    } else {
      load_some(input + vector * count, values);
    }
    write(vector, values);
  }
}

template <typename T, int count>
void launch(const RmsNorm& norm, musaStream_t stream) {
  int threads = 1;
  while (threads < kThreads && threads < norm.size / count) {
    threads *= 2;
  }
  const int64_t rows = kThreads / threads;
  norm_kernel<T, count>
      <<<static_cast<unsigned>((norm.tokens * norm.heads + rows - 1) / rows), kThreads, 0, stream>>>(norm, threads);
}

} // namespace

void rms_norm_rows(const RmsNorm& norm, Dtype dtype, musaStream_t stream) {
  with_type(dtype, [&]<typename T>() {
    if (norm.aligned) {
      launch<T, kEight>(norm, stream);
    } else {
      launch<T, 1>(norm, stream);
    }
  });
}

} // namespace musa_ops_serving
