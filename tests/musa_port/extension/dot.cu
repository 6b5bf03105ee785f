// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A CUDA extension as its author has it: kernel, launch, module. Nothing here knows of MUSA.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/types.h>

template <typename scalar_t>
__global__ void dot_kernel(const scalar_t* a, const scalar_t* b, scalar_t* out, int n) {
  extern __shared__ unsigned char raw[];
  scalar_t* partial = reinterpret_cast<scalar_t*>(raw);
  scalar_t sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    sum += a[i] * b[i];
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) {
      partial[threadIdx.x] += partial[threadIdx.x + step];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    atomicAdd(out, partial[0]);
  }
}

at::Tensor dot_cuda(const at::Tensor& a, const at::Tensor& b) {
  const c10::cuda::OptionalCUDAGuard guard(a.device());
  at::Tensor out = at::zeros({}, a.options());
  AT_DISPATCH_FLOATING_TYPES(a.scalar_type(), "dot", [&] {
    dot_kernel<scalar_t><<<4, 128, 128 * sizeof(scalar_t), at::cuda::getCurrentCUDAStream()>>>(
        a.data_ptr<scalar_t>(), b.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), a.numel());
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
