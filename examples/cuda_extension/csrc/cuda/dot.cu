// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The kernel of an unmodified CUDA extension, without any reference to MUSA.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/Exceptions.h>
#include <c10/cuda/CUDAGuard.h>

#include "../extensions.h"

namespace {

template <typename scalar_t>
using Vector = at::PackedTensorAccessor32<scalar_t, 1, at::RestrictPtrTraits>;

template <typename scalar_t>
__global__ void dot_kernel(const Vector<scalar_t> a, const Vector<scalar_t> b, scalar_t* out) {
  extern __shared__ unsigned char raw[];
  scalar_t* partial = reinterpret_cast<scalar_t*>(raw);
  scalar_t sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < a.size(0); i += blockDim.x * gridDim.x) {
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

at::Tensor dot(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.is_cuda() && b.is_cuda(), "a and b must be CUDA tensors");
  check_operands(a, b);
  AT_CUDA_CHECK(c10::cuda::MaybeSetDevice(a.get_device()));
  const at::cuda::CUDAGuard guard(a.device());
  const at::Tensor x = a.flatten();
  const at::Tensor y = b.flatten();
  at::Tensor out = at::zeros({}, a.options());
  AT_DISPATCH_FLOATING_TYPES(a.scalar_type(), "dot", [&] {
    dot_kernel<scalar_t><<<4, 128, 128 * sizeof(scalar_t), at::cuda::getCurrentCUDAStream()>>>(
        x.packed_accessor32<scalar_t, 1, at::RestrictPtrTraits>(),
        y.packed_accessor32<scalar_t, 1, at::RestrictPtrTraits>(), out.data_ptr<scalar_t>());
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

} // namespace

TORCH_LIBRARY_IMPL(dot_extension, CUDA, m) { m.impl("dot", &dot); }
