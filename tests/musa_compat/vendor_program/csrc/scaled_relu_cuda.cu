// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "scaled_relu.cuh"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAGuard.h>

__global__ void scaled_relu_kernel(const float* in, float* out, float scale, int64_t n) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) {
    out[i] = in[i] > 0 ? scale * in[i] : 0;
  }
}

at::Tensor scaled_relu_forward(const at::Tensor& x, double scale) {
  TORCH_CHECK(x.is_cuda(), "x must be a tensor of the device");
  const at::cuda::OptionalCUDAGuard guard(x.device());
  const at::Tensor in = x.contiguous();
  at::Tensor out = at::empty_like(in);
  const int64_t n = in.numel();
  const int threads = 128;
  scaled_relu_kernel<<<(n + threads - 1) / threads, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
      in.data_ptr<float>(), out.data_ptr<float>(), static_cast<float>(scale), n);
  return out;
}
