// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A conversion without __device__, as in torch's Half for a compiler that does not define __CUDACC__.
struct Half {
  unsigned short bits;
  operator float() const { return bits; }
};

template <typename T>
__global__ void kernel(const T* x, float* y) {
  y[0] = static_cast<float>(x[0]);
}

void launch(const Half* x, float* y) { kernel<<<1, 1>>>(x, y); }
