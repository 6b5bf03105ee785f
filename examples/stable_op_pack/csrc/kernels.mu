// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "kernels.h"

namespace musa_stable_demo {
namespace {

constexpr int kThreads = 256;

unsigned blocks(int64_t count) { return static_cast<unsigned>((count + kThreads - 1) / kThreads); }

// NaN is preserved, as in torch.
__global__ void relu(const float* in, float* out, int64_t count) {
  const int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (i < count) {
    out[i] = in[i] <= 0 ? 0 : in[i];
  }
}

__global__ void scale_shift(const float* in, float scale, float shift, float* out, int64_t count) {
  const int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (i < count) {
    out[i] = in[i] * scale + shift;
  }
}

} // namespace

void launch_relu(const float* in, float* out, int64_t count, musaStream_t stream) {
  relu<<<blocks(count), kThreads, 0, stream>>>(in, out, count);
}

void launch_scale_shift(const float* in, float scale, float shift, float* out, int64_t count, musaStream_t stream) {
  scale_shift<<<blocks(count), kThreads, 0, stream>>>(in, scale, shift, out, count);
}

} // namespace musa_stable_demo
