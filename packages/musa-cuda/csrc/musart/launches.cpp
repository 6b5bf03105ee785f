// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Kernels that <<<>>> starts. The code that nvcc generates calls __cudaLaunchKernel of libcudart; FindMUSA.cmake links packs with
// --wrap=__cudaLaunchKernel, which makes it this function, so that launches count, and fail by injected faults, as any call.
#include "musart/support.h"

namespace musa_cuda::entries {
extern Entry musaLaunchKernel;
}

extern "C" cudaError_t __cudaLaunchKernel(
    cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream);

extern "C" MUSA_CUDA_EXPORT cudaError_t __wrap___cudaLaunchKernel(
    cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream) {
  return musa_cuda::call<cudaError_t, musa_cuda::Errors::Stay>(musa_cuda::entries::musaLaunchKernel, [&] {
    return __cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
  });
}
