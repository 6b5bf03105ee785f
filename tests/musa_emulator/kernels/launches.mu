// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// All forms of a launch, and the values that kernels get from it.
#include <functional>
#include <string>
#include <utility>

#include "check.h"

__global__ void where(uint3* threads, uint3* blocks, dim3* sizes) {
  const int i = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const int n = blockDim.x * blockDim.y * blockDim.z;
  threads[b * n + i] = threadIdx;
  blocks[b * n + i] = blockIdx;
  sizes[0] = blockDim;
  sizes[1] = gridDim;
}

namespace outer::inner {
template <typename T, int N>
__global__ void __launch_bounds__(256) scale(T* x, T factor) {
  x[blockIdx.x * blockDim.x + threadIdx.x] *= factor * N;
}
template <typename T>
struct Holder {
  static __device__ T twice(T x) { return 2 * x; }
  __host__ void run(T* x, int n, musaStream_t stream) { scale<T, 3><<<n / 4, 4, 0, stream>>>(x, twice(T(1))); }
};
} // namespace outer::inner

template <class F>
__global__ void apply(int* out, F f) {
  out[threadIdx.x] = f(threadIdx.x);
}

template <class F>
void apply_to(int* out, int n, const F& f) {
  apply<<<1, n>>>(out, f); // the compiler deduces the template arguments
}

#define LAUNCH(kernel, n, ...) kernel<<<1, n>>>(__VA_ARGS__)

struct Large {
  int values[100];
};
__global__ void sum_of(Large large, int* out) {
  int sum = 0;
  for (int value : large.values) {
    sum += value;
  }
  large.values[0] = 1000; // the thread's own copy
  out[threadIdx.x] = sum;
}

// The compiler driver shares parameters that no thread can change; the kernel's identity does not depend on names.
template <typename T, int N = 2>
__global__ void constants(const Large large, const T factor, int* const out, const unsigned);
template <typename T, int N>
__global__ void constants(const Large large, const T factor, int* const out, const unsigned unused) {
  out[threadIdx.x] = large.values[threadIdx.x] * factor * N;
}

__global__ void nothing() {}
__global__ void by_shift(int* out, int x) { out[0] = x >> 1 > 2 ? 1 << 4 : 3; }

int calls = 0;
int counted(int value) {
  ++calls;
  return value;
}

int main() {
  {
    const dim3 grid(3, 2, 2), block(4, 3, 2);
    const int n = 12 * 24;
    Array<uint3> threads(n), blocks(n);
    Array<dim3> sizes(2);
    where<<<grid, block>>>(threads, blocks, sizes);
    int wrong = 0;
    for (int b = 0; b < 12; ++b) {
      for (int i = 0; i < 24; ++i) {
        const uint3 t = threads[b * 24 + i], at = blocks[b * 24 + i];
        wrong += t.x != i % 4 || t.y != i / 4 % 3 || t.z != i / 12;
        wrong += at.x != b % 3 || at.y != b / 3 % 2 || at.z != b / 6;
      }
    }
    EXPECT_EQ(wrong, 0);
    EXPECT(sizes[0].y == 3 && sizes[1].z == 2);
  }
  {
    Array<float> x(8, 1.5f);
    musaStream_t stream;
    musaStreamCreate(&stream);
    outer::inner::scale<float, 1><<<2, 4>>>(x, 2.f);
    outer::inner::scale<float, (3 > 2 ? 2 : 1)><<<dim3(2), dim3(4), size_t(0), nullptr>>>(x, 2);
    musaDeviceSynchronize();
    outer::inner::Holder<float>().run(x, 8, stream);
    musaStreamSynchronize(stream);
    EXPECT_EQ(x[7], 1.5f * 2 * 4 * 6);
    musaStreamDestroy(stream);
  }
  {
    Array<int> out(64);
    const int add = 5;
    apply_to(out, 64, [=] __device__(int i) { return i * i + add; });
    EXPECT_EQ(out[63], 63 * 63 + 5);
    LAUNCH(apply, 8, static_cast<int*>(out), [](int i) { return -i; });
    EXPECT_EQ(out[7], -7);
    EXPECT_EQ(out[8], 69);
  }
  {
    Large large{};
    for (int i = 0; i < 100; ++i) {
      large.values[i] = i;
    }
    Array<int> out(3);
    sum_of<<<1, 3>>>(large, out);
    large.values[5] = -1; // after the launch has copied it
    EXPECT_EQ(out[0], 4950);
    EXPECT_EQ(out[2], 4950);
    constants<<<1, 3>>>(large, 7, static_cast<int*>(out), 0u);
    EXPECT_EQ(out[1], 14);
    large.values[2] = 100;
    constants<int, 3><<<1, 3>>>(large, 7.9, static_cast<int*>(out), 0u);
    EXPECT_EQ(out[2], 2100);
  }
  {
    // Arguments are evaluated once.
    Array<int> out(1);
    by_shift<<<counted(1), counted(1)>>>(out, counted(8));
    EXPECT_EQ(calls, 3);
    EXPECT_EQ(out[0], 16);
  }
  {
    void (*pointer)(int*, int) = by_shift;
    Array<int> out(1);
    pointer<<<1, 1>>>(out, 2);
    EXPECT_EQ(out[0], 3);
    int* data = out;
    int x = 100;
    void* arguments[] = {&data, &x};
    EXPECT_EQ(musaLaunchKernel((const void*)by_shift, dim3(1), dim3(1), arguments, 0, nullptr), musaSuccess);
    EXPECT_EQ(out[0], 16);
  }
  nothing<<<1, 1>>>();
  nothing<<<70000, 1>>>();
  EXPECT_EQ(musaGetLastError(), musaSuccess);
  nothing<<<1, 1025>>>();
  EXPECT_EQ(musaGetLastError(), musaErrorInvalidConfiguration);
  nothing<<<0, 1>>>();
  EXPECT_EQ(musaGetLastError(), musaErrorInvalidConfiguration);
  nothing<<<1, 1, 1 << 20>>>();
  EXPECT_EQ(musaGetLastError(), musaErrorInvalidValue);
  EXPECT(std::string("<<<1, 2>>>()").size() == 12); // in a string it is not a launch
  EXPECT(u8R"x("<<<)x"[0] == '"');
  return finish();
}
