// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Idioms of public programs: kernels known only by address, default arguments, a type before __shared__, clocks, partitions.
#include <cooperative_groups.h>

#include <ctime>
#include <utility>

#include "check.h"

namespace cg = cooperative_groups;

__host__ __device__ float add(float a, float b) { return a + b; }

// A launcher that takes any kernel as a value.
template <class Kernel, class... Arguments>
void launch(Kernel kernel, dim3 block, Arguments... arguments) {
  kernel<<<1, block, 0, 0>>>(arguments...);
}
// Template parameters: a named function pointer, a pack, and an unnamed function pointer.
template <float (*op)(const float, const float), class T, class... More>
static __global__ void combine(const T* x, T* out, More... more) {
  out[threadIdx.x] = op(x[threadIdx.x], (0.0f + ... + more[threadIdx.x]));
}
template <class T, int>
__global__ void unnamed(T* out) {
  out[threadIdx.x] = static_cast<T>(threadIdx.x);
}

__global__ void defaults(int* out, int a, int b = 3, const int* more = nullptr) {
  *out = 100 * a + 10 * b + (more != nullptr ? *more : 0);
}
template <class T>
__global__ void defaults_of(T* out, T a, T b = T(5)) {
  *out = a * b;
}

__global__ void types_first(int* out) {
  extern int __shared__ room[];
  int __shared__ pair[2];
  room[threadIdx.x] = static_cast<int>(threadIdx.x);
  pair[threadIdx.x % 2] = 1;
  __syncthreads();
  out[threadIdx.x] = room[blockDim.x - 1 - threadIdx.x] + pair[0] + pair[1];
}

__shared__ int of_file[2][32];
__shared__ int one_of_file;
__device__ int from_of_file(int i) { return of_file[1][i] + one_of_file; }
__global__ void shared_of_file(int* out) {
  of_file[0][threadIdx.x] = static_cast<int>(threadIdx.x);
  of_file[1][31 - threadIdx.x] = of_file[0][threadIdx.x] * 2;
  if (threadIdx.x == 0) {
    one_of_file = 100;
  }
  __syncthreads();
  out[blockIdx.x * 32 + threadIdx.x] = from_of_file(threadIdx.x);
}

__global__ void leaf(int* out, int base) {
  __shared__ int cells[32];
  cells[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[base + threadIdx.x] = cells[31 - threadIdx.x] + static_cast<int>(blockDim.x);
}
// A kernel that is launched on an idle stream may run while the launching kernel runs.
__global__ void launches_leaves(int* out, int* own, musaStream_t stream) {
  __shared__ int cells[4];
  cells[threadIdx.x] = static_cast<int>(threadIdx.x);
  leaf<<<1, 32, 0, stream>>>(out, threadIdx.x * 32);
  __syncthreads();
  own[threadIdx.x] = cells[3 - threadIdx.x] + 10 * static_cast<int>(blockDim.x) + 100 * static_cast<int>(threadIdx.x);
}

struct Watch {
  long clock() const { return 7; }
};
__global__ void wait_cycles(long* out, long cycles) {
  const long begin = clock();
  while (clock() - begin < cycles) {}
  *out = (long)clock() - begin;
}

__global__ void partitions(unsigned* odd, unsigned* labels) {
  const cg::thread_block block = cg::this_thread_block();
  const cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block); // forgets its parent
  const unsigned i = block.thread_rank();
  const auto same = cg::binary_partition(tile, i % 2 != 0);
  odd[i] = same.size() * 100 + same.thread_rank();
  const auto labeled = cg::labeled_partition(tile, i % 32 / 10);
  labels[i] = labeled.size() * 100 + labeled.shfl(i, 0) % 32;
}
// The selector is a run-time value; the fourth of each four bits is ignored.
__global__ void permute(unsigned selector, unsigned* out) {
  out[0] = __byte_perm(0x33A21100, 0x77665544, selector);
  out[1] = __byte_perm(0x33A21100, 0x77665544, selector | 0x8888);
}
__global__ void swaps(int* cell) {
  atomicCAS_system(cell, 5u, 7u); // arguments of other types than the cell
  atomicCAS_block(cell + 1, 5, 7l);
}

int main() {
  Array<float> x(8), out(8);
  x = {0, 1, 2, 3, 4, 5, 6, 7};
  launch(
      combine<add, float, const float*, const float*>, 8, (const float*)(float*)x, (float*)out, (const float*)(float*)x,
      (const float*)(float*)x);
  EXPECT(out.host() == (std::vector<float>{0, 3, 6, 9, 12, 15, 18, 21}));
  launch(unnamed<float, 3>, 8, (float*)out);
  EXPECT(out.host() == x.host());
  launch(static_cast<void (*)(float*)>(nullptr), 1, (float*)out);
  EXPECT_EQ(musaGetLastError(), musaErrorInvalidDeviceFunction);

  Array<int> n(40);
  defaults<<<1, 1>>>((int*)n, 1);
  EXPECT_EQ(n[0], 130);
  defaults<<<1, 1>>>(n + 1, 1, 2);
  defaults<<<1, 1>>>(n + 2, 1, 2, (const int*)(int*)n);
  EXPECT_EQ(n[1], 120);
  EXPECT_EQ(n[2], 250);
  defaults_of<<<1, 1>>>((int*)n, 4);
  EXPECT_EQ(n[0], 20);
  defaults_of<int><<<1, 1>>>((int*)n, 4);
  EXPECT_EQ(n[0], 20);
  defaults_of<int><<<1, 1>>>(n, 4, 6);
  EXPECT_EQ(n[0], 24);

  types_first<<<1, 32, 32 * sizeof(int)>>>(n);
  EXPECT_EQ(n[0], 33);
  EXPECT_EQ(n[31], 2);

  Array<int> rows(64);
  shared_of_file<<<2, 32>>>(rows);
  EXPECT_EQ(rows[0], 162);
  EXPECT_EQ(rows[63], 100);

  musaStream_t stream = nullptr;
  musaStreamCreateWithFlags(&stream, musaStreamNonBlocking);
  Array<int> leaves(128), own(4);
  launches_leaves<<<1, 4>>>((int*)leaves, (int*)own, stream);
  EXPECT_EQ(musaDeviceSynchronize(), musaSuccess);
  EXPECT_EQ(musaStreamSynchronize(stream), musaSuccess); // launched while the kernel ran
  musaStreamDestroy(stream);
  for (int i = 0; i < 128; ++i) {
    EXPECT_EQ(leaves[i], 31 - i % 32 + 32);
  }
  EXPECT(own.host() == (std::vector<int>{43, 142, 241, 340}));

  // In kernels, clock() follows the wall clock. Processor time, which clock() returns on the host, would take a
  // thousand times as long, and the test would not end.
  Array<long> cycles(1);
  for (int i = 0; i < 20; ++i) {
    wait_cycles<<<1, 1>>>(cycles, 20000000);
  }
  EXPECT(cycles[0] >= 20000000);
  EXPECT_EQ(Watch().clock(), 7);
  EXPECT(clock() < 600 * CLOCKS_PER_SEC); // the host's clock(), since the program's start

  Array<unsigned> odd(64), labels(64);
  partitions<<<1, 64>>>(odd, labels);
  for (unsigned i = 0; i < 64; ++i) {
    EXPECT_EQ(odd[i], 1600 + i % 32 / 2);
    EXPECT_EQ(labels[i], (i % 32 < 30 ? 1000 : 200) + i % 32 / 10 * 10);
  }
  permute<<<1, 1>>>(0xFFFF7250u, labels);
  EXPECT_EQ(labels[0], 0x77A25500u);
  EXPECT_EQ(labels[1], 0x77A25500u);
  n = std::vector<int>(40, 5);
  swaps<<<1, 1>>>(n);
  EXPECT_EQ(n[0], 7);
  EXPECT_EQ(n[1], 7);
  return finish();
}
