// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// C++ entry to the runtime API: the C interface plus the typed overloads.
#ifndef MUSA_RUNTIME_H
#define MUSA_RUNTIME_H
#define __MUSA_RUNTIME_H__ // programs test it

#include "host_defines.h"
#include "library_types.h"
#include "vector_functions.h"
#include "driver_types.h"
#include "musa_runtime_api.h"

#ifdef __cplusplus

template <class T>
static inline musaError_t musaMalloc(T** pointer, size_t bytes) {
  return ::musaMalloc(reinterpret_cast<void**>(pointer), bytes);
}

template <class T>
static inline musaError_t musaMallocHost(T** pointer, size_t bytes, unsigned int flags = 0) {
  return ::musaHostAlloc(reinterpret_cast<void**>(pointer), bytes, flags);
}

template <class T>
static inline musaError_t musaHostAlloc(T** pointer, size_t bytes, unsigned int flags) {
  return ::musaHostAlloc(reinterpret_cast<void**>(pointer), bytes, flags);
}

template <class T>
static inline musaError_t musaHostGetDevicePointer(T** device, void* host, unsigned int flags) {
  return ::musaHostGetDevicePointer(reinterpret_cast<void**>(device), host, flags);
}

template <class T>
static inline musaError_t musaMallocManaged(
    T** pointer, size_t bytes, unsigned int flags = musaMemAttachGlobal) {
  return ::musaMallocManaged(reinterpret_cast<void**>(pointer), bytes, flags);
}

template <class T>
static inline musaError_t musaMallocPitch(T** pointer, size_t* pitch, size_t width, size_t height) {
  return ::musaMallocPitch(reinterpret_cast<void**>(pointer), pitch, width, height);
}

template <class T>
static inline musaError_t musaFuncSetAttribute(T* function, enum musaFuncAttribute attribute, int value) {
  return ::musaFuncSetAttribute(reinterpret_cast<const void*>(function), attribute, value);
}

template <class T>
static inline musaError_t musaFuncGetAttributes(struct musaFuncAttributes* attributes, T* function) {
  return ::musaFuncGetAttributes(attributes, reinterpret_cast<const void*>(function));
}

template <class T>
static inline musaError_t musaFuncSetCacheConfig(T* function, enum musaFuncCache config) {
  return ::musaFuncSetCacheConfig(reinterpret_cast<const void*>(function), config);
}

template <class T>
static inline musaError_t musaLaunchKernel(
    T* function, dim3 grid, dim3 block, void** arguments, size_t sharedBytes = 0, musaStream_t stream = 0) {
  return ::musaLaunchKernel(reinterpret_cast<const void*>(function), grid, block, arguments, sharedBytes, stream);
}

template <class T>
static inline musaError_t musaLaunchCooperativeKernel(
    T* function, dim3 grid, dim3 block, void** arguments, size_t sharedBytes = 0, musaStream_t stream = 0) {
  return ::musaLaunchCooperativeKernel(
      reinterpret_cast<const void*>(function), grid, block, arguments, sharedBytes, stream);
}

template <class... Parameters, class... Arguments>
static inline musaError_t musaLaunchKernelEx(
    const musaLaunchConfig_t* config, void (*kernel)(Parameters...), Arguments&&... arguments) {
  // Converted to the parameter types first: the runtime reads each argument through a pointer of that type.
  return [&](Parameters... converted) {
    void* pointers[sizeof...(Parameters) + 1] = {const_cast<void*>(static_cast<const void*>(&converted))..., nullptr};
    return ::musaLaunchKernelExC(config, reinterpret_cast<const void*>(kernel), pointers);
  }(static_cast<Parameters>(arguments)...);
}

template <class T>
static inline musaError_t musaOccupancyMaxActiveBlocksPerMultiprocessor(
    int* blocks, T* function, int blockSize, size_t dynamicSharedBytes) {
  return ::musaOccupancyMaxActiveBlocksPerMultiprocessor(
      blocks, reinterpret_cast<const void*>(function), blockSize, dynamicSharedBytes);
}

// Returns the largest block that keeps a multiprocessor full, and the grid that fills the device with it.
template <class T>
static inline musaError_t musaOccupancyMaxPotentialBlockSize(
    int* minGridSize, int* blockSize, T* function, size_t dynamicSharedBytes = 0, int blockSizeLimit = 0) {
  const void* symbol = reinterpret_cast<const void*>(function);
  int device = 0;
  int processors = 0;
  musaFuncAttributes attributes = {};
  musaError_t status = ::musaGetDevice(&device);
  if (status == musaSuccess) {
    status = ::musaDeviceGetAttribute(&processors, musaDevAttrMultiProcessorCount, device);
  }
  if (status == musaSuccess) {
    status = ::musaFuncGetAttributes(&attributes, symbol);
  }
  int block = attributes.maxThreadsPerBlock;
  if (blockSizeLimit > 0 && blockSizeLimit < block) {
    block = blockSizeLimit;
  }
  int blocks = 0;
  if (status == musaSuccess) {
    status = ::musaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, symbol, block, dynamicSharedBytes);
  }
  if (status == musaSuccess) {
    *blockSize = block;
    *minGridSize = blocks * processors;
  }
  return status;
}

// SDK 5.x passes flags alone; SDK 4.x has the five-argument C form. Both spellings are in use.
static inline musaError_t musaGraphInstantiate(
    musaGraphExec_t* exec, musaGraph_t graph, unsigned long long flags = 0) {
  return ::musaGraphInstantiateWithFlags(exec, graph, flags);
}

static inline musaError_t musaEventCreate(musaEvent_t* event, unsigned int flags) {
  return ::musaEventCreateWithFlags(event, flags);
}

#endif // __cplusplus

#endif
