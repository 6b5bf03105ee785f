// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Kernels do not use torch, so that its headers are not compiled for the device.
#include "kernels.h"

namespace musa_demo {
namespace {

constexpr int kThreads = 256;

__global__ void bias_relu(const float* in, const float* bias, float* out, int64_t count, int64_t columns) {
  const int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (i < count) {
    const float sum = in[i] + bias[i % columns];
    out[i] = sum > 0 ? sum : 0;
  }
}

} // namespace

void launch_bias_relu(
    const float* in, const float* bias, float* out, int64_t count, int64_t columns, musaStream_t stream) {
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  bias_relu<<<blocks, kThreads, 0, stream>>>(in, bias, out, count, columns);
}

} // namespace musa_demo
