// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// C++ header of the runtime API: the C interface and typed overloads.
#ifndef MUSA_RUNTIME_H
#define MUSA_RUNTIME_H
#define __MUSA_RUNTIME_H__ // checked by programs

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
static inline musaError_t musaMallocManaged(T** pointer, size_t bytes, unsigned int flags = musaMemAttachGlobal) {
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
  // The runtime reads each argument through a pointer to the parameter type, so arguments are converted first.
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

// Returns the block size with the highest occupancy, and the smallest grid that fills the device with it.
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

// Templates, so that a caller's own function of the same name is preferred; see musa_runtime_api.h.
namespace musa_runtime_exports {
extern "C" {
musaError_t exported_musaMallocAsync(void** pointer, size_t bytes, musaStream_t stream) __asm__("musaMallocAsync");
musaError_t exported_musaFreeAsync(void* pointer, musaStream_t stream) __asm__("musaFreeAsync");
musaError_t exported_musaDeviceGetDefaultMemPool(musaMemPool_t* pool, int device) __asm__(
    "musaDeviceGetDefaultMemPool");
musaError_t exported_musaMemPoolSetAttribute(musaMemPool_t pool, musaMemPoolAttr attribute, void* value) __asm__(
    "musaMemPoolSetAttribute");
musaError_t exported_musaMemPoolGetAttribute(musaMemPool_t pool, musaMemPoolAttr attribute, void* value) __asm__(
    "musaMemPoolGetAttribute");
musaError_t exported_musaMemPoolTrimTo(musaMemPool_t pool, size_t bytes) __asm__("musaMemPoolTrimTo");
musaError_t exported_musaStreamGetCaptureInfo(
    musaStream_t stream, musaStreamCaptureStatus* status, unsigned long long* id) __asm__("musaStreamGetCaptureInfo");
musaError_t exported_musaThreadExchangeStreamCaptureMode(musaStreamCaptureMode* mode) __asm__(
    "musaThreadExchangeStreamCaptureMode");
}
} // namespace musa_runtime_exports

template <class = void>
static inline musaError_t musaMallocAsync(void** pointer, size_t bytes, musaStream_t stream) {
  return musa_runtime_exports::exported_musaMallocAsync(pointer, bytes, stream);
}
template <class = void>
static inline musaError_t musaFreeAsync(void* pointer, musaStream_t stream) {
  return musa_runtime_exports::exported_musaFreeAsync(pointer, stream);
}
template <class = void>
static inline musaError_t musaDeviceGetDefaultMemPool(musaMemPool_t* pool, int device) {
  return musa_runtime_exports::exported_musaDeviceGetDefaultMemPool(pool, device);
}
template <class = void>
static inline musaError_t musaMemPoolSetAttribute(musaMemPool_t pool, musaMemPoolAttr attribute, void* value) {
  return musa_runtime_exports::exported_musaMemPoolSetAttribute(pool, attribute, value);
}
template <class = void>
static inline musaError_t musaMemPoolGetAttribute(musaMemPool_t pool, musaMemPoolAttr attribute, void* value) {
  return musa_runtime_exports::exported_musaMemPoolGetAttribute(pool, attribute, value);
}
template <class = void>
static inline musaError_t musaMemPoolTrimTo(musaMemPool_t pool, size_t bytes) {
  return musa_runtime_exports::exported_musaMemPoolTrimTo(pool, bytes);
}
template <class = void>
static inline musaError_t musaStreamGetCaptureInfo(
    musaStream_t stream, musaStreamCaptureStatus* status, unsigned long long* id) {
  return musa_runtime_exports::exported_musaStreamGetCaptureInfo(stream, status, id);
}
template <class = void>
static inline musaError_t musaThreadExchangeStreamCaptureMode(musaStreamCaptureMode* mode) {
  return musa_runtime_exports::exported_musaThreadExchangeStreamCaptureMode(mode);
}
template <class T>
static inline musaError_t musaMallocAsync(T** pointer, size_t bytes, musaStream_t stream) {
  return musa_runtime_exports::exported_musaMallocAsync(reinterpret_cast<void**>(pointer), bytes, stream);
}

// Takes the variable itself or its address, as in `musaMemcpyToSymbol(table, ...)`, where `table` is declared
// __constant__.
extern "C" musaError_t musaEmulatorRegisterSymbol(const void* symbol, size_t bytes);
template <class T>
static inline const void* musa_symbol_of(const T& symbol) {
  const void* address = &const_cast<const char&>(reinterpret_cast<const volatile char&>(symbol));
  ::musaEmulatorRegisterSymbol(address, sizeof symbol);
  return address;
}
template <class T>
static inline musaError_t musaMemcpyToSymbol(
    const T& symbol, const void* src, size_t bytes, size_t offset = 0, musaMemcpyKind kind = musaMemcpyHostToDevice) {
  return ::musaMemcpyToSymbol(musa_symbol_of(symbol), src, bytes, offset, kind);
}
template <class T>
static inline musaError_t musaMemcpyFromSymbol(
    void* dst, const T& symbol, size_t bytes, size_t offset = 0, musaMemcpyKind kind = musaMemcpyDeviceToHost) {
  return ::musaMemcpyFromSymbol(dst, musa_symbol_of(symbol), bytes, offset, kind);
}
template <class T>
static inline musaError_t musaMemcpyToSymbolAsync(
    const T& symbol, const void* src, size_t bytes, size_t offset = 0, musaMemcpyKind kind = musaMemcpyHostToDevice,
    musaStream_t stream = 0) {
  return ::musaMemcpyToSymbolAsync(musa_symbol_of(symbol), src, bytes, offset, kind, stream);
}
template <class T>
static inline musaError_t musaMemcpyFromSymbolAsync(
    void* dst, const T& symbol, size_t bytes, size_t offset = 0, musaMemcpyKind kind = musaMemcpyDeviceToHost,
    musaStream_t stream = 0) {
  return ::musaMemcpyFromSymbolAsync(dst, musa_symbol_of(symbol), bytes, offset, kind, stream);
}
template <class T>
static inline musaError_t musaGetSymbolAddress(void** address, const T& symbol) {
  return ::musaGetSymbolAddress(address, musa_symbol_of(symbol));
}

// The channel descriptor of an element type, e.g. musaCreateChannelDesc<float4>().
template <class T>
inline musaChannelFormatDesc musaCreateChannelDesc();
#define MUSA_DEFINE_CHANNEL_DESC(name, element, kind) \
  template <> \
  inline musaChannelFormatDesc musaCreateChannelDesc<element>() { \
    return ::musaCreateChannelDesc(8 * static_cast<int>(sizeof(element)), 0, 0, 0, kind); \
  } \
  template <> \
  inline musaChannelFormatDesc musaCreateChannelDesc<name##1>() { \
    return ::musaCreateChannelDesc(8 * static_cast<int>(sizeof(element)), 0, 0, 0, kind); \
  } \
  template <> \
  inline musaChannelFormatDesc musaCreateChannelDesc<name##2>() { \
    const int bits = 8 * static_cast<int>(sizeof(element)); \
    return ::musaCreateChannelDesc(bits, bits, 0, 0, kind); \
  } \
  template <> \
  inline musaChannelFormatDesc musaCreateChannelDesc<name##4>() { \
    const int bits = 8 * static_cast<int>(sizeof(element)); \
    return ::musaCreateChannelDesc(bits, bits, bits, bits, kind); \
  }
MUSA_DEFINE_CHANNEL_DESC(char, signed char, musaChannelFormatKindSigned)
MUSA_DEFINE_CHANNEL_DESC(uchar, unsigned char, musaChannelFormatKindUnsigned)
MUSA_DEFINE_CHANNEL_DESC(short, short, musaChannelFormatKindSigned)
MUSA_DEFINE_CHANNEL_DESC(ushort, unsigned short, musaChannelFormatKindUnsigned)
MUSA_DEFINE_CHANNEL_DESC(int, int, musaChannelFormatKindSigned)
MUSA_DEFINE_CHANNEL_DESC(uint, unsigned int, musaChannelFormatKindUnsigned)
MUSA_DEFINE_CHANNEL_DESC(float, float, musaChannelFormatKindFloat)
#undef MUSA_DEFINE_CHANNEL_DESC

// The signature of CUDA 11, which ggml's MUSA backend calls.
static inline musaError_t musaGraphExecUpdate(
    musaGraphExec_t exec, musaGraph_t graph, musaGraphNode_t* errorNode, musaGraphExecUpdateResult* result) {
  musaGraphExecUpdateResultInfo info = {};
  const musaError_t status = ::musaGraphExecUpdate(exec, graph, &info);
  if (errorNode != nullptr) {
    *errorNode = info.errorNode;
  }
  if (result != nullptr) {
    *result = info.result;
  }
  return status;
}

// SDK 5.x passes only flags; SDK 4.x has the C form with five arguments. Programs use both.
static inline musaError_t musaGraphInstantiate(musaGraphExec_t* exec, musaGraph_t graph, unsigned long long flags = 0) {
  return ::musaGraphInstantiateWithFlags(exec, graph, flags);
}

static inline musaError_t musaEventCreate(musaEvent_t* event, unsigned int flags) {
  return ::musaEventCreateWithFlags(event, flags);
}

#endif // __cplusplus

#endif
