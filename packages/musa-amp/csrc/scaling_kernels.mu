// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "scaling_kernels.h"

#include <musa_bf16.h>
#include <musa_fp16.h>

#include <cfloat>

namespace musa_amp {
namespace {

constexpr int kThreads = 256;

// Adjacent elements, loaded and stored together.
template <typename T>
struct alignas(4 * sizeof(T)) Vector {
  static constexpr int kSize = 4;
  T values[kSize];
};

__device__ inline float wide(__half value) { return __half2float(value); }
__device__ inline float wide(__mt_bfloat16 value) { return __bfloat162float(value); }
__device__ inline float wide(float value) { return value; }
__device__ inline double wide(double value) { return value; }

__device__ inline void store(__half* place, float value) { *place = __float2half(value); }
__device__ inline void store(__mt_bfloat16* place, float value) { *place = __float2bfloat16(value); }
__device__ inline void store(float* place, float value) { *place = value; }
__device__ inline void store(double* place, double value) { *place = value; }

// Returns false for NaN.
__device__ inline bool is_finite(float value) { return value >= -FLT_MAX && value <= FLT_MAX; }
__device__ inline bool is_finite(double value) { return value >= -DBL_MAX && value <= DBL_MAX; }

template <typename T>
__global__ void unscale(Chunks chunks, float* found_inf, const float* factor) {
  const Chunk chunk = chunks.at[blockIdx.x];
  T* const data = static_cast<T*>(chunk.data);
  const float by = *factor;
  bool finite = true;
  const auto unscale_one = [&](T* place) {
    const auto value = wide(*place);
    finite &= is_finite(value);
    store(place, value * by);
  };
  const bool aligned = reinterpret_cast<uintptr_t>(data) % sizeof(Vector<T>) == 0;
  const int64_t vectors = aligned ? chunk.count / Vector<T>::kSize : 0;
  for (int64_t i = threadIdx.x; i < vectors; i += kThreads) {
    Vector<T>& place = reinterpret_cast<Vector<T>*>(data)[i];
    Vector<T> loaded = place;
#pragma unroll
    for (T& value : loaded.values) {
      unscale_one(&value);
    }
    place = loaded;
  }
  for (int64_t i = vectors * Vector<T>::kSize + threadIdx.x; i < chunk.count; i += kThreads) {
    unscale_one(data + i);
  }
  if (!finite) {
    atomicExch(found_inf, 1.0f);
  }
}

__global__ void update_scale(
    float* scale, int* growth_tracker, const float* found_inf, double growth, double backoff, int64_t interval) {
  if (*found_inf != 0) {
    *scale = static_cast<float>(*scale * backoff);
    *growth_tracker = 0;
    return;
  }
  const int64_t steps = int64_t{*growth_tracker} + 1;
  if (steps != interval) {
    *growth_tracker = static_cast<int>(steps);
    return;
  }
  const float grown = static_cast<float>(*scale * growth);
  if (is_finite(grown)) {
    *scale = grown;
  }
  *growth_tracker = 0;
}

} // namespace

void launch_unscale(const Chunks& chunks, Dtype dtype, float* found_inf, const float* factor, musaStream_t stream) {
  switch (dtype) {
    case Dtype::kFloat16: unscale<__half><<<chunks.count, kThreads, 0, stream>>>(chunks, found_inf, factor); break;
    case Dtype::kBFloat16:
      unscale<__mt_bfloat16><<<chunks.count, kThreads, 0, stream>>>(chunks, found_inf, factor);
      break;
    case Dtype::kFloat32: unscale<float><<<chunks.count, kThreads, 0, stream>>>(chunks, found_inf, factor); break;
    case Dtype::kFloat64: unscale<double><<<chunks.count, kThreads, 0, stream>>>(chunks, found_inf, factor); break;
  }
}

void launch_update_scale(
    float* scale, int* growth_tracker, const float* found_inf, double growth, double backoff, int64_t interval,
    musaStream_t stream) {
  update_scale<<<1, 1, 0, stream>>>(scale, growth_tracker, found_inf, growth, backoff, interval);
}

} // namespace musa_amp
