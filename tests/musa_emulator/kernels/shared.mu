// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Shared memory, barriers, and threads that exit early.
#include "check.h"

extern __shared__ double dynamic_of_file[];

template <typename T, int N>
struct Pair {
  T first;
  T rest[N];
};

template <typename T, int kThreads>
__global__ void reverse(T* x) {
  __shared__ T tile[kThreads], spare[2][kThreads / 2];
  static __shared__ __align__(16) Pair<T, 3> pair;
  alignas(64) __shared__ char bytes[3];
  const int i = threadIdx.x;
  tile[i] = x[i];
  spare[i % 2][i / 2] = x[i];
  if (i == 0) {
    pair.first = 7;
    pair.rest[2] = 9;
    bytes[2] = reinterpret_cast<size_t>(bytes) % 64 == 0 ? 1 : 100;
  }
  __syncthreads();
  x[i] = tile[kThreads - 1 - i] + spare[i % 2][i / 2] + pair.first + pair.rest[2] + bytes[2];
}

template <typename T>
__device__ T block_sum(T value) {
  extern __shared__ __align__(16) unsigned char raw[];
  T* sums = reinterpret_cast<T*>(raw);
  sums[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    __syncthreads();
  }
  return sums[0];
}

template <typename T>
__global__ void sums(const T* x, T* out) {
  const T sum = block_sum(x[blockIdx.x * blockDim.x + threadIdx.x]);
  if (threadIdx.x == 0) {
    out[blockIdx.x] = sum;
  }
}

__global__ void of_file(double* out) {
  dynamic_of_file[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = *(dynamic_of_file + (blockDim.x - 1 - threadIdx.x));
}

// Dynamic shared memory as an object of another type, and by the address of the array.
__global__ void as_objects(int* out) {
  extern __shared__ char room[];
  auto& pair = reinterpret_cast<Pair<int, 3>&>(room);
  int* cells = reinterpret_cast<int*>(&room);
  if (threadIdx.x == 0) {
    pair.first = 5;
    pair.rest[1] = 6;
  }
  __syncthreads();
  out[threadIdx.x] = cells[0] * 10 + cells[2];
}

// A lambda that captures by copy does not copy variables in shared memory.
__global__ void in_lambda(int* out) {
  extern __shared__ int numbers[];
  const int i = threadIdx.x;
  auto put = [=](int value) { numbers[i] = value; };
  put(i * 3);
  __syncthreads();
  out[i] = numbers[blockDim.x - 1 - i];
}

// The barrier does not wait for threads that have exited.
__global__ void leaves_early(int* x, int n) {
  const int i = threadIdx.x;
  if (i >= n) {
    return;
  }
  x[i] = i;
  __syncthreads();
  const int other = x[n - 1 - i];
  __syncthreads();
  x[i] += other * 100;
}

__global__ void leaves_between(int* x) {
  for (int round = 0; round < static_cast<int>(threadIdx.x) + 1; ++round) {
    atomicAdd(&x[round], 1);
    __syncthreads();
  }
}

__global__ void votes(int* x) {
  const int i = threadIdx.x;
  const int odd = __syncthreads_count(i % 2);
  const int all = __syncthreads_and(i >= 0);
  const int not_all = __syncthreads_and(i > 0);
  const int any = __syncthreads_or(i == 77);
  const int none = __syncthreads_or(i == 777);
  x[i] = odd * 10000 + all * 1000 + not_all * 100 + any * 10 + none;
}

// Each thread passes a value to its neighbour in every round.
__global__ void ring(int* x, int rounds) {
  __shared__ int cells[2][1024];
  const int i = threadIdx.x + blockDim.x * threadIdx.y;
  const int n = blockDim.x * blockDim.y;
  int value = i;
  for (int round = 0; round < rounds; ++round) {
    cells[round % 2][i] = value;
    __syncthreads();
    value = cells[round % 2][(i + 1) % n];
  }
  x[i + blockIdx.x * n] = value;
}

int main() {
  {
    Array<int> x(256);
    std::vector<int> values(256);
    for (int i = 0; i < 256; ++i) {
      values[i] = i;
    }
    x = values;
    reverse<int, 256><<<1, 256>>>(x);
    EXPECT_EQ(x[0], 255 + 0 + 17);
    EXPECT_EQ(x[200], 55 + 200 + 17);
    Array<double> y(32, 2.0);
    reverse<double, 32><<<1, 32>>>(y);
    EXPECT_EQ(y[31], 21.0);
  }
  {
    Array<float> x(4096, 0.5f), out(16);
    sums<<<16, 256, 256 * sizeof(float)>>>((const float*)(float*)x, (float*)out);
    EXPECT_EQ(out[0], 128.f);
    EXPECT_EQ(out[15], 128.f);
    Array<long long> y(1024, 3), total(1);
    sums<<<1, 1024, 1024 * sizeof(long long)>>>((const long long*)(long long*)y, (long long*)total);
    EXPECT_EQ(total[0], 3072);
  }
  {
    Array<double> out(64);
    of_file<<<1, 64, 64 * sizeof(double)>>>(out);
    EXPECT_EQ(out[0], 63.0);
    Array<int> objects(4);
    as_objects<<<1, 4, sizeof(Pair<int, 3>)>>>(objects);
    EXPECT_EQ(objects[0], 56);
    EXPECT_EQ(objects[3], 56);
    in_lambda<<<1, 4, 4 * sizeof(int)>>>(objects);
    EXPECT_EQ(objects[0], 9);
    EXPECT_EQ(objects[3], 0);
  }
  {
    Array<int> x(64, -1);
    leaves_early<<<1, 64>>>(x, 40);
    EXPECT_EQ(x[0], 3900);
    EXPECT_EQ(x[39], 39);
    EXPECT_EQ(x[40], -1);
    Array<int> counts(100);
    leaves_between<<<1, 100>>>(counts);
    EXPECT_EQ(counts[0], 100);
    EXPECT_EQ(counts[99], 1);
  }
  {
    Array<int> x(150);
    votes<<<1, 150>>>(x);
    EXPECT_EQ(x[0], 75 * 10000 + 1010);
    EXPECT_EQ(x[149], 75 * 10000 + 1010);
  }
  {
    Array<int> x(4 * 96);
    ring<<<4, dim3(32, 3)>>>(x, 50);
    EXPECT_EQ(x[0], 50);
    EXPECT_EQ(x[95], 49);
    EXPECT_EQ(x[3 * 96 + 90], 44);
    Array<int> one(3);
    ring<<<3, 1>>>(one, 5);
    EXPECT_EQ(one[2], 0);
  }
  return finish();
}
