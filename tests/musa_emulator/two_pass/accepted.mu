// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Both passes accept this file, which has the code of the other files without their mistakes.
#include <musa_fp16.h>

#include <cmath>
#include <vector>

__host__ __device__ int doubled(int x) { return 2 * x; }
constexpr int tripled(int x) { return 3 * x; }
__constant__ int offsets[4];

__device__ float half_sum(const __half* x, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) {
    sum += __half2float(x[i]);
  }
  return sum + std::exp(sum) + log1pf(sum);
}

template <typename F>
__global__ void apply(int* out, F f) {
  alignas(16) __shared__ char room[64];
  room[threadIdx.x] = static_cast<char>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = f(doubled(room[threadIdx.x])) + tripled(offsets[0]) + __shfl_xor_sync(0xffffffffu, out[0], 1);
}

__global__ void sum_up(const __half* x, float* out) {
#ifdef __MUSA_ARCH__
  *out = half_sum(x, __MUSA_ARCH__);
#endif
}

int main() {
  int* out = nullptr;
  musaMalloc(&out, 32 * sizeof(int));
  auto plus_one = [] __host__ __device__(int x) { return x + 1; };
  apply<<<1, 32, 0, nullptr>>>(out, plus_one);
  apply<<<1, 32>>>(out, [] __device__(int x) { return x + 1; });
  std::vector<int> host(plus_one(31));
  return doubled(host[0]);
}
