// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// CUDA 13 takes locations where the SDK takes a device, and no longer sets the width of shared memory's banks.
#include "musart/support.h"

namespace musa_cuda::by_hand {
namespace {

cudaMemLocation location_of(int device) {
  cudaMemLocation location{};
  location.type = device < 0 ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  location.id = device < 0 ? 0 : device;
  return location;
}

} // namespace

musaError_t musaMemAdvise(const void* pointer, size_t bytes, enum musaMemoryAdvise advice, int device) {
  return status(cudaMemAdvise(pointer, bytes, static_cast<cudaMemoryAdvise>(advice), location_of(device)));
}
musaError_t musaMemPrefetchAsync(const void* pointer, size_t bytes, int device, musaStream_t stream) {
  return status(cudaMemPrefetchAsync(pointer, bytes, location_of(device), 0, (cudaStream_t)stream));
}

// Shared memory has banks of four bytes; CUDA 13 has no setting for it.
musaError_t musaDeviceSetSharedMemConfig(enum musaSharedMemConfig) { return musaSuccess; }
musaError_t musaFuncSetSharedMemConfig(const void*, enum musaSharedMemConfig) { return musaSuccess; }

} // namespace musa_cuda::by_hand
