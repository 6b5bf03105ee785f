// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A user class with the bits of a half is read as __half, like torch's Half, after a copy of several elements.
#include "check.h"

#include <musa_fp16.h>

struct Bits {
  unsigned short x;
  __device__ operator float() const { return __half2float(*reinterpret_cast<const __half*>(&x)); }
};

template <typename T, int n>
struct alignas(sizeof(T) * n) Several {
  T values[n];
};

template <int n>
__global__ void add(const Bits* in, float* out, int count, float number) {
  const int i = (blockIdx.x * blockDim.x + threadIdx.x) * n;
  if (i + n <= count) {
    const Several<Bits, n> taken = *reinterpret_cast<const Several<Bits, n>*>(in + i);
    Several<float, n> result;
    for (int k = 0; k < n; ++k) {
      result.values[k] = float(taken.values[k]) + number;
    }
    *reinterpret_cast<Several<float, n>*>(out + i) = result;
  }
}

int main() {
  constexpr int count = 4096;
  Bits* in;
  float* out;
  musaMallocManaged(&in, count * sizeof(Bits));
  musaMallocManaged(&out, count * sizeof(float));
  for (int i = 0; i < count; ++i) {
    in[i].x = __half_as_ushort(__float2half(static_cast<float>(i % 1000) - 500));
  }
  add<16><<<2, 128>>>(in, out, count, 0.25f);
  musaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < count; ++i) {
    wrong += out[i] != static_cast<float>(i % 1000) - 500 + 0.25f;
  }
  std::printf("%d wrong\n", wrong);
  return wrong != 0;
}
