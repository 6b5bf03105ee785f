// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Structures whose layout differs from CUDA's.
#include "musart/support.h"

#include <cstring>
#include <utility>

namespace musa_cuda::by_hand {

musaError_t musaGetDeviceProperties(struct musaDeviceProp* to, int device) {
  cudaDeviceProp from;
  const cudaError_t error = cudaGetDeviceProperties(&from, device);
  if (error != cudaSuccess) {
    return status(error);
  }
  *to = {};
  std::memcpy(to->uuid.bytes, from.uuid.bytes, sizeof(to->uuid.bytes));
#define MUSA_CUDA_COPY(field) \
  static_assert(sizeof(to->field) == sizeof(from.field)); \
  std::memcpy(&to->field, &from.field, sizeof(to->field))
  MUSA_CUDA_COPY(name);
  MUSA_CUDA_COPY(luid);
  MUSA_CUDA_COPY(luidDeviceNodeMask);
  MUSA_CUDA_COPY(totalGlobalMem);
  MUSA_CUDA_COPY(sharedMemPerBlock);
  MUSA_CUDA_COPY(regsPerBlock);
  MUSA_CUDA_COPY(warpSize);
  MUSA_CUDA_COPY(memPitch);
  MUSA_CUDA_COPY(maxThreadsPerBlock);
  MUSA_CUDA_COPY(maxThreadsDim);
  MUSA_CUDA_COPY(maxGridSize);
  MUSA_CUDA_COPY(totalConstMem);
  MUSA_CUDA_COPY(major);
  MUSA_CUDA_COPY(minor);
  MUSA_CUDA_COPY(textureAlignment);
  MUSA_CUDA_COPY(texturePitchAlignment);
  MUSA_CUDA_COPY(multiProcessorCount);
  MUSA_CUDA_COPY(integrated);
  MUSA_CUDA_COPY(canMapHostMemory);
  MUSA_CUDA_COPY(maxTexture1D);
  MUSA_CUDA_COPY(maxTexture1DMipmap);
  MUSA_CUDA_COPY(maxTexture2D);
  MUSA_CUDA_COPY(maxTexture2DMipmap);
  MUSA_CUDA_COPY(maxTexture2DLinear);
  MUSA_CUDA_COPY(maxTexture2DGather);
  MUSA_CUDA_COPY(maxTexture3D);
  MUSA_CUDA_COPY(maxTexture3DAlt);
  MUSA_CUDA_COPY(maxTextureCubemap);
  MUSA_CUDA_COPY(maxTexture1DLayered);
  MUSA_CUDA_COPY(maxTexture2DLayered);
  MUSA_CUDA_COPY(maxTextureCubemapLayered);
  MUSA_CUDA_COPY(maxSurface1D);
  MUSA_CUDA_COPY(maxSurface2D);
  MUSA_CUDA_COPY(maxSurface3D);
  MUSA_CUDA_COPY(maxSurface1DLayered);
  MUSA_CUDA_COPY(maxSurface2DLayered);
  MUSA_CUDA_COPY(maxSurfaceCubemap);
  MUSA_CUDA_COPY(maxSurfaceCubemapLayered);
  MUSA_CUDA_COPY(surfaceAlignment);
  MUSA_CUDA_COPY(concurrentKernels);
  MUSA_CUDA_COPY(ECCEnabled);
  MUSA_CUDA_COPY(pciBusID);
  MUSA_CUDA_COPY(pciDeviceID);
  MUSA_CUDA_COPY(pciDomainID);
  MUSA_CUDA_COPY(tccDriver);
  MUSA_CUDA_COPY(asyncEngineCount);
  MUSA_CUDA_COPY(unifiedAddressing);
  MUSA_CUDA_COPY(memoryBusWidth);
  MUSA_CUDA_COPY(l2CacheSize);
  MUSA_CUDA_COPY(persistingL2CacheMaxSize);
  MUSA_CUDA_COPY(maxThreadsPerMultiProcessor);
  MUSA_CUDA_COPY(streamPrioritiesSupported);
  MUSA_CUDA_COPY(globalL1CacheSupported);
  MUSA_CUDA_COPY(localL1CacheSupported);
  MUSA_CUDA_COPY(sharedMemPerMultiprocessor);
  MUSA_CUDA_COPY(regsPerMultiprocessor);
  MUSA_CUDA_COPY(managedMemory);
  MUSA_CUDA_COPY(isMultiGpuBoard);
  MUSA_CUDA_COPY(multiGpuBoardGroupID);
  MUSA_CUDA_COPY(hostNativeAtomicSupported);
  MUSA_CUDA_COPY(pageableMemoryAccess);
  MUSA_CUDA_COPY(concurrentManagedAccess);
  MUSA_CUDA_COPY(computePreemptionSupported);
  MUSA_CUDA_COPY(canUseHostPointerForRegisteredMem);
  MUSA_CUDA_COPY(cooperativeLaunch);
  MUSA_CUDA_COPY(sharedMemPerBlockOptin);
  MUSA_CUDA_COPY(pageableMemoryAccessUsesHostPageTables);
  MUSA_CUDA_COPY(directManagedMemAccessFromHost);
  MUSA_CUDA_COPY(maxBlocksPerMultiProcessor);
  MUSA_CUDA_COPY(accessPolicyMaxWindowSize);
  MUSA_CUDA_COPY(reservedSharedMemPerBlock);
  MUSA_CUDA_COPY(hostRegisterSupported);
  MUSA_CUDA_COPY(hostRegisterReadOnlySupported);
  MUSA_CUDA_COPY(timelineSemaphoreInteropSupported);
  MUSA_CUDA_COPY(memoryPoolsSupported);
  MUSA_CUDA_COPY(gpuDirectRDMASupported);
  MUSA_CUDA_COPY(gpuDirectRDMAFlushWritesOptions);
  MUSA_CUDA_COPY(gpuDirectRDMAWritesOrdering);
  MUSA_CUDA_COPY(memoryPoolSupportedHandleTypes);
  MUSA_CUDA_COPY(clusterLaunch);
#undef MUSA_CUDA_COPY
  // No longer in CUDA 13's structure, and still attributes.
  const std::pair<int*, cudaDeviceAttr> attributes[] = {
      {&to->clockRate, cudaDevAttrClockRate},
      {&to->memoryClockRate, cudaDevAttrMemoryClockRate},
      {&to->deviceOverlap, cudaDevAttrGpuOverlap},
      {&to->kernelExecTimeoutEnabled, cudaDevAttrKernelExecTimeout},
      {&to->computeMode, cudaDevAttrComputeMode},
      {&to->singleToDoublePrecisionPerfRatio, cudaDevAttrSingleToDoublePrecisionPerfRatio},
      {&to->maxTexture1DLinear, cudaDevAttrMaxTexture1DLinearWidth},
  };
  for (const auto& [value, attribute] : attributes) {
    if (const cudaError_t failed = cudaDeviceGetAttribute(value, attribute, device); failed != cudaSuccess) {
      return status(failed);
    }
  }
  return musaSuccess;
}

musaError_t musaPointerGetAttributes(struct musaPointerAttributes* to, const void* pointer) {
  cudaPointerAttributes from;
  const cudaError_t error = cudaPointerGetAttributes(&from, pointer);
  if (error == cudaSuccess) {
    *to = {static_cast<musaMemoryType>(from.type), from.device, from.devicePointer, from.hostPointer};
  }
  return status(error);
}

musaError_t musaFuncGetAttributes(struct musaFuncAttributes* to, const void* function) {
  cudaFuncAttributes from;
  const cudaError_t error = cudaFuncGetAttributes(&from, function);
  if (error == cudaSuccess) {
    *to = {from.sharedSizeBytes,       from.constSizeBytes, from.localSizeBytes,
           from.maxThreadsPerBlock,    from.numRegs,        from.ptxVersion,
           from.binaryVersion,         from.cacheModeCA,    from.maxDynamicSharedSizeBytes,
           from.preferredShmemCarveout};
  }
  return status(error);
}

} // namespace musa_cuda::by_hand
