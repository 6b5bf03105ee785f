// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// C API of the runtime (libmusart).
//
// Unless noted, every function returns an error code, and stores a failure as the calling thread's last error. SDK
// 4.x exports some functions without declaring them (the stream-ordered allocator, the capture mode exchange, the
// three-argument musaStreamGetCaptureInfo). They are declared for C here. For C++ they are templates in
// musa_runtime.h: callers define functions with these names in their own namespaces, and overload resolution prefers
// a non-template, while two plain functions would be ambiguous.
#ifndef MUSA_RUNTIME_API_H
#define MUSA_RUNTIME_API_H
#define __MUSA_RUNTIME_API_H__ // checked by programs

#include "driver_types.h"
#include "host_defines.h"
#include "library_types.h"
#include "musa_texture_types.h"

#define MUSART_VERSION 40301
#define __MUSART_API_VERSION 10400

MUSA_EXTERN_C_BEGIN

// ---- device ---------------------------------------------------------------------------------------------------

MUSA_PUBLIC musaError_t musaGetDeviceCount(int* count);
MUSA_PUBLIC musaError_t musaGetDevice(int* device);
MUSA_PUBLIC musaError_t musaSetDevice(int device);
MUSA_PUBLIC musaError_t musaSetDeviceFlags(unsigned int flags);
MUSA_PUBLIC musaError_t musaGetDeviceProperties(struct musaDeviceProp* properties, int device);
MUSA_PUBLIC musaError_t musaDeviceGetAttribute(int* value, enum musaDeviceAttr attribute, int device);
MUSA_PUBLIC musaError_t musaDeviceSynchronize(void);
MUSA_PUBLIC musaError_t musaDeviceReset(void);
MUSA_PUBLIC musaError_t musaDeviceSetLimit(enum musaLimit limit, size_t value);
MUSA_PUBLIC musaError_t musaDeviceSetSharedMemConfig(enum musaSharedMemConfig config);
MUSA_PUBLIC musaError_t musaCtxResetPersistingL2Cache(void);
// Writes "domain:bus:device.function" to `busId`, at most `length` characters including the terminator.
MUSA_PUBLIC musaError_t musaDeviceGetPCIBusId(char* busId, int length, int device);
MUSA_PUBLIC musaError_t musaDeviceGetByPCIBusId(int* device, const char* busId);
// A numerically lower value is a higher priority: `least` is 0, `greatest` is negative.
MUSA_PUBLIC musaError_t musaDeviceGetStreamPriorityRange(int* least, int* greatest);
MUSA_PUBLIC musaError_t musaDeviceCanAccessPeer(int* canAccess, int device, int peer);
MUSA_PUBLIC musaError_t musaDeviceEnablePeerAccess(int peer, unsigned int flags MUSA_DEFAULT_ARGUMENT(0));
MUSA_PUBLIC musaError_t musaDeviceDisablePeerAccess(int peer);
MUSA_PUBLIC musaError_t musaDriverGetVersion(int* version);
MUSA_PUBLIC musaError_t musaRuntimeGetVersion(int* version);

// ---- errors ---------------------------------------------------------------------------------------------------

// Returns the calling thread's last error and clears it. On a lost device, the next call returns the error again.
MUSA_PUBLIC musaError_t musaGetLastError(void);
MUSA_PUBLIC musaError_t musaPeekAtLastError(void);
MUSA_PUBLIC const char* musaGetErrorString(musaError_t error);
MUSA_PUBLIC const char* musaGetErrorName(musaError_t error);

// ---- streams --------------------------------------------------------------------------------------------------

MUSA_PUBLIC musaError_t musaStreamCreate(musaStream_t* stream);
MUSA_PUBLIC musaError_t musaStreamCreateWithFlags(musaStream_t* stream, unsigned int flags);
MUSA_PUBLIC musaError_t musaStreamCreateWithPriority(musaStream_t* stream, unsigned int flags, int priority);
// Returns immediately. The stream's resources are released after its pending work has finished.
MUSA_PUBLIC musaError_t musaStreamDestroy(musaStream_t stream);
MUSA_PUBLIC musaError_t musaStreamSynchronize(musaStream_t stream);
// Returns musaSuccess if all work has finished, otherwise musaErrorNotReady.
MUSA_PUBLIC musaError_t musaStreamQuery(musaStream_t stream);
MUSA_PUBLIC musaError_t musaStreamGetPriority(musaStream_t stream, int* priority);
MUSA_PUBLIC musaError_t musaStreamGetFlags(musaStream_t stream, unsigned int* flags);
MUSA_PUBLIC musaError_t musaStreamGetId(musaStream_t stream, unsigned long long* id);
MUSA_PUBLIC musaError_t
musaStreamWaitEvent(musaStream_t stream, musaEvent_t event, unsigned int flags MUSA_DEFAULT_ARGUMENT(0));
MUSA_PUBLIC musaError_t
musaStreamAddCallback(musaStream_t stream, musaStreamCallback_t callback, void* userData, unsigned int flags);
// `fn` runs on the host in stream order. It must not call the runtime; such calls return musaErrorNotPermitted.
MUSA_PUBLIC musaError_t musaLaunchHostFunc(musaStream_t stream, musaHostFn_t fn, void* userData);
MUSA_PUBLIC musaError_t
musaStreamSetAttribute(musaStream_t stream, musaStreamAttrID attribute, const musaStreamAttrValue* value);
MUSA_PUBLIC musaError_t musaStreamAttachMemAsync(
    musaStream_t stream, void* pointer, size_t length MUSA_DEFAULT_ARGUMENT(0),
    unsigned int flags MUSA_DEFAULT_ARGUMENT(musaMemAttachSingle));

// ---- events ---------------------------------------------------------------------------------------------------

MUSA_PUBLIC musaError_t musaEventCreate(musaEvent_t* event);
MUSA_PUBLIC musaError_t musaEventCreateWithFlags(musaEvent_t* event, unsigned int flags);
MUSA_PUBLIC musaError_t musaEventRecord(musaEvent_t event, musaStream_t stream MUSA_DEFAULT_ARGUMENT(0));
MUSA_PUBLIC musaError_t musaEventRecordWithFlags(
    musaEvent_t event, musaStream_t stream MUSA_DEFAULT_ARGUMENT(0),
    unsigned int flags MUSA_DEFAULT_ARGUMENT(musaEventRecordDefault));
MUSA_PUBLIC musaError_t musaEventQuery(musaEvent_t event);
MUSA_PUBLIC musaError_t musaEventSynchronize(musaEvent_t event);
// Milliseconds between the completion of two recorded events that have timing enabled.
MUSA_PUBLIC musaError_t musaEventElapsedTime(float* milliseconds, musaEvent_t start, musaEvent_t end);
MUSA_PUBLIC musaError_t musaEventDestroy(musaEvent_t event);

// ---- memory ---------------------------------------------------------------------------------------------------

MUSA_PUBLIC musaError_t musaMalloc(void** pointer, size_t bytes);
MUSA_PUBLIC musaError_t musaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height);
MUSA_PUBLIC musaError_t musaMalloc3D(struct musaPitchedPtr* pitched, struct musaExtent extent);
// Waits for the device, then frees the memory.
MUSA_PUBLIC musaError_t musaFree(void* pointer);
MUSA_PUBLIC musaError_t musaMallocHost(void** pointer, size_t bytes);
MUSA_PUBLIC musaError_t musaHostAlloc(void** pointer, size_t bytes, unsigned int flags);
MUSA_PUBLIC musaError_t musaFreeHost(void* pointer);
MUSA_PUBLIC musaError_t musaHostRegister(void* pointer, size_t bytes, unsigned int flags);
MUSA_PUBLIC musaError_t musaHostUnregister(void* pointer);
MUSA_PUBLIC musaError_t musaHostGetDevicePointer(void** device, void* host, unsigned int flags);
MUSA_PUBLIC musaError_t
musaMallocManaged(void** pointer, size_t bytes, unsigned int flags MUSA_DEFAULT_ARGUMENT(musaMemAttachGlobal));
MUSA_PUBLIC musaError_t musaMemAdvise(const void* pointer, size_t bytes, enum musaMemoryAdvise advice, int device);
MUSA_PUBLIC musaError_t
musaMemPrefetchAsync(const void* pointer, size_t bytes, int device, musaStream_t stream MUSA_DEFAULT_ARGUMENT(0));
MUSA_PUBLIC musaError_t musaMemGetInfo(size_t* free, size_t* total);
MUSA_PUBLIC musaError_t musaPointerGetAttributes(struct musaPointerAttributes* attributes, const void* pointer);

MUSA_PUBLIC struct musaChannelFormatDesc musaCreateChannelDesc(
    int x, int y, int z, int w, enum musaChannelFormatKind f);
// Memory for textures, with extents in elements. Returns musaErrorNotSupported for layers, surfaces and cubes.
MUSA_PUBLIC musaError_t musaMallocArray(
    musaArray_t* array, const struct musaChannelFormatDesc* desc, size_t width, size_t height MUSA_DEFAULT_ARGUMENT(0),
    unsigned int flags MUSA_DEFAULT_ARGUMENT(0));
MUSA_PUBLIC musaError_t musaFreeArray(musaArray_t array);
// Offsets within a row and widths are in bytes.
MUSA_PUBLIC musaError_t
musaMemcpyToArray(musaArray_t dst, size_t x, size_t y, const void* src, size_t bytes, enum musaMemcpyKind kind);
MUSA_PUBLIC musaError_t musaMemcpy2DToArray(
    musaArray_t dst, size_t x, size_t y, const void* src, size_t pitch, size_t width, size_t height,
    enum musaMemcpyKind kind);
// For linear memory, pitched memory or an array; returns musaErrorNotSupported for mipmapped arrays.
MUSA_PUBLIC musaError_t musaCreateTextureObject(
    musaTextureObject_t* object, const struct musaResourceDesc* resource, const struct musaTextureDesc* texture,
    const struct musaResourceViewDesc* view);
MUSA_PUBLIC musaError_t musaDestroyTextureObject(musaTextureObject_t object);

// Variables declared __device__ or __constant__. In C++ the templates in musa_runtime.h take the variable itself.
// These functions take its address, after a template was called for the variable.
MUSA_PUBLIC musaError_t
musaMemcpyToSymbol(const void* symbol, const void* src, size_t bytes, size_t offset, enum musaMemcpyKind kind);
MUSA_PUBLIC musaError_t
musaMemcpyFromSymbol(void* dst, const void* symbol, size_t bytes, size_t offset, enum musaMemcpyKind kind);
MUSA_PUBLIC musaError_t musaMemcpyToSymbolAsync(
    const void* symbol, const void* src, size_t bytes, size_t offset, enum musaMemcpyKind kind, musaStream_t stream);
MUSA_PUBLIC musaError_t musaMemcpyFromSymbolAsync(
    void* dst, const void* symbol, size_t bytes, size_t offset, enum musaMemcpyKind kind, musaStream_t stream);
MUSA_PUBLIC musaError_t musaGetSymbolAddress(void** address, const void* symbol);

#ifndef __cplusplus
// Allocates immediately. The memory becomes free for others when the stream reaches musaFreeAsync.
MUSA_PUBLIC musaError_t musaMallocAsync(void** pointer, size_t bytes, musaStream_t stream);
MUSA_PUBLIC musaError_t musaFreeAsync(void* pointer, musaStream_t stream);
MUSA_PUBLIC musaError_t musaDeviceGetDefaultMemPool(musaMemPool_t* pool, int device);
MUSA_PUBLIC musaError_t musaMemPoolSetAttribute(musaMemPool_t pool, enum musaMemPoolAttr attribute, void* value);
MUSA_PUBLIC musaError_t musaMemPoolGetAttribute(musaMemPool_t pool, enum musaMemPoolAttr attribute, void* value);
MUSA_PUBLIC musaError_t musaMemPoolTrimTo(musaMemPool_t pool, size_t bytes);
MUSA_PUBLIC musaError_t
musaStreamGetCaptureInfo(musaStream_t stream, enum musaStreamCaptureStatus* status, unsigned long long* id);
MUSA_PUBLIC musaError_t musaThreadExchangeStreamCaptureMode(enum musaStreamCaptureMode* mode);
#endif

MUSA_PUBLIC musaError_t musaMemcpy(void* dst, const void* src, size_t bytes, enum musaMemcpyKind kind);
MUSA_PUBLIC musaError_t musaMemcpyAsync(
    void* dst, const void* src, size_t bytes, enum musaMemcpyKind kind, musaStream_t stream MUSA_DEFAULT_ARGUMENT(0));
MUSA_PUBLIC musaError_t musaMemcpyPeer(void* dst, int dstDevice, const void* src, int srcDevice, size_t bytes);
MUSA_PUBLIC musaError_t musaMemcpyPeerAsync(
    void* dst, int dstDevice, const void* src, int srcDevice, size_t bytes,
    musaStream_t stream MUSA_DEFAULT_ARGUMENT(0));
// Pitches and widths are in bytes.
MUSA_PUBLIC musaError_t musaMemcpy2D(
    void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height, enum musaMemcpyKind kind);
MUSA_PUBLIC musaError_t musaMemcpy2DAsync(
    void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height, enum musaMemcpyKind kind,
    musaStream_t stream MUSA_DEFAULT_ARGUMENT(0));
MUSA_PUBLIC musaError_t musaMemcpy3D(const struct musaMemcpy3DParms* parameters);
MUSA_PUBLIC musaError_t
musaMemcpy3DAsync(const struct musaMemcpy3DParms* parameters, musaStream_t stream MUSA_DEFAULT_ARGUMENT(0));
MUSA_PUBLIC musaError_t musaMemset(void* pointer, int value, size_t bytes);
MUSA_PUBLIC musaError_t
musaMemsetAsync(void* pointer, int value, size_t bytes, musaStream_t stream MUSA_DEFAULT_ARGUMENT(0));
MUSA_PUBLIC musaError_t musaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height);
MUSA_PUBLIC musaError_t musaMemset2DAsync(
    void* pointer, size_t pitch, int value, size_t width, size_t height, musaStream_t stream MUSA_DEFAULT_ARGUMENT(0));
MUSA_PUBLIC musaError_t musaMemset3D(struct musaPitchedPtr pitched, int value, struct musaExtent extent);

// ---- inter-process sharing ------------------------------------------------------------------------------------

MUSA_PUBLIC musaError_t musaIpcGetMemHandle(musaIpcMemHandle_t* handle, void* pointer);
MUSA_PUBLIC musaError_t musaIpcOpenMemHandle(
    void** pointer, musaIpcMemHandle_t handle,
    unsigned int flags MUSA_DEFAULT_ARGUMENT(musaIpcMemLazyEnablePeerAccess));
MUSA_PUBLIC musaError_t musaIpcCloseMemHandle(void* pointer);
MUSA_PUBLIC musaError_t musaIpcGetEventHandle(musaIpcEventHandle_t* handle, musaEvent_t event);
MUSA_PUBLIC musaError_t musaIpcOpenEventHandle(musaEvent_t* event, musaIpcEventHandle_t handle);

// ---- kernels --------------------------------------------------------------------------------------------------

MUSA_PUBLIC musaError_t musaLaunchKernel(
    const void* function, dim3 grid, dim3 block, void** arguments, size_t sharedBytes, musaStream_t stream);
MUSA_PUBLIC musaError_t musaLaunchKernelExC(const musaLaunchConfig_t* config, const void* function, void** arguments);
MUSA_PUBLIC musaError_t musaLaunchCooperativeKernel(
    const void* function, dim3 grid, dim3 block, void** arguments, size_t sharedBytes, musaStream_t stream);
MUSA_PUBLIC musaError_t musaFuncGetAttributes(struct musaFuncAttributes* attributes, const void* function);
MUSA_PUBLIC musaError_t musaFuncSetAttribute(const void* function, enum musaFuncAttribute attribute, int value);
MUSA_PUBLIC musaError_t musaFuncSetCacheConfig(const void* function, enum musaFuncCache config);
MUSA_PUBLIC musaError_t musaFuncSetSharedMemConfig(const void* function, enum musaSharedMemConfig config);
MUSA_PUBLIC musaError_t musaGetFuncBySymbol(musaFunction_t* function, const void* symbol);
MUSA_PUBLIC musaError_t musaOccupancyMaxActiveBlocksPerMultiprocessor(
    int* blocks, const void* function, int blockSize, size_t dynamicSharedBytes);

// ---- stream capture -------------------------------------------------------------------------------------------

MUSA_PUBLIC musaError_t musaStreamBeginCapture(musaStream_t stream, enum musaStreamCaptureMode mode);
MUSA_PUBLIC musaError_t musaStreamEndCapture(musaStream_t stream, musaGraph_t* graph);
MUSA_PUBLIC musaError_t musaStreamIsCapturing(musaStream_t stream, enum musaStreamCaptureStatus* status);
MUSA_PUBLIC musaError_t musaStreamGetCaptureInfo_v2(
    musaStream_t stream, enum musaStreamCaptureStatus* status, unsigned long long* id MUSA_DEFAULT_ARGUMENT(0),
    musaGraph_t* graph MUSA_DEFAULT_ARGUMENT(0), const musaGraphNode_t** dependencies MUSA_DEFAULT_ARGUMENT(0),
    size_t* count MUSA_DEFAULT_ARGUMENT(0));

// ---- graphs ---------------------------------------------------------------------------------------------------

MUSA_PUBLIC musaError_t musaGraphCreate(musaGraph_t* graph, unsigned int flags);
MUSA_PUBLIC musaError_t musaGraphDestroy(musaGraph_t graph);
MUSA_PUBLIC musaError_t musaGraphClone(musaGraph_t* clone, musaGraph_t original);
MUSA_PUBLIC musaError_t musaGraphAddKernelNode(
    musaGraphNode_t* node, musaGraph_t graph, const musaGraphNode_t* dependencies, size_t count,
    const struct musaKernelNodeParams* parameters);
MUSA_PUBLIC musaError_t musaGraphAddMemcpyNode(
    musaGraphNode_t* node, musaGraph_t graph, const musaGraphNode_t* dependencies, size_t count,
    const struct musaMemcpy3DParms* parameters);
MUSA_PUBLIC musaError_t musaGraphAddMemcpyNode1D(
    musaGraphNode_t* node, musaGraph_t graph, const musaGraphNode_t* dependencies, size_t count, void* dst,
    const void* src, size_t bytes, enum musaMemcpyKind kind);
MUSA_PUBLIC musaError_t musaGraphAddMemsetNode(
    musaGraphNode_t* node, musaGraph_t graph, const musaGraphNode_t* dependencies, size_t count,
    const struct musaMemsetParams* parameters);
MUSA_PUBLIC musaError_t musaGraphAddHostNode(
    musaGraphNode_t* node, musaGraph_t graph, const musaGraphNode_t* dependencies, size_t count,
    const struct musaHostNodeParams* parameters);
MUSA_PUBLIC musaError_t musaGraphAddEventRecordNode(
    musaGraphNode_t* node, musaGraph_t graph, const musaGraphNode_t* dependencies, size_t count, musaEvent_t event);
MUSA_PUBLIC musaError_t musaGraphAddEventWaitNode(
    musaGraphNode_t* node, musaGraph_t graph, const musaGraphNode_t* dependencies, size_t count, musaEvent_t event);
MUSA_PUBLIC musaError_t musaGraphAddChildGraphNode(
    musaGraphNode_t* node, musaGraph_t graph, const musaGraphNode_t* dependencies, size_t count, musaGraph_t child);
// If the arrays are NULL, only the counts are returned; otherwise `count` is the capacity on entry.
MUSA_PUBLIC musaError_t musaGraphGetNodes(musaGraph_t graph, musaGraphNode_t* nodes, size_t* count);
MUSA_PUBLIC musaError_t musaGraphGetEdges(musaGraph_t graph, musaGraphNode_t* from, musaGraphNode_t* to, size_t* count);
MUSA_PUBLIC musaError_t musaGraphNodeGetType(musaGraphNode_t node, enum musaGraphNodeType* type);
MUSA_PUBLIC musaError_t musaGraphKernelNodeGetParams(musaGraphNode_t node, struct musaKernelNodeParams* parameters);
MUSA_PUBLIC musaError_t
musaGraphKernelNodeSetParams(musaGraphNode_t node, const struct musaKernelNodeParams* parameters);
// Writes the graph in Graphviz format; `flags` are musaGraphDebugDotFlags.
MUSA_PUBLIC musaError_t musaGraphDebugDotPrint(musaGraph_t graph, const char* path, unsigned int flags);

MUSA_PUBLIC musaError_t
musaGraphInstantiate(musaGraphExec_t* exec, musaGraph_t graph, musaGraphNode_t* errorNode, char* log, size_t logBytes);
MUSA_PUBLIC musaError_t
musaGraphInstantiateWithFlags(musaGraphExec_t* exec, musaGraph_t graph, unsigned long long flags);
MUSA_PUBLIC musaError_t musaGraphExecDestroy(musaGraphExec_t exec);
MUSA_PUBLIC musaError_t musaGraphLaunch(musaGraphExec_t exec, musaStream_t stream);
MUSA_PUBLIC musaError_t
musaGraphExecUpdate(musaGraphExec_t exec, musaGraph_t graph, musaGraphExecUpdateResultInfo* result);
MUSA_PUBLIC musaError_t musaGraphExecKernelNodeSetParams(
    musaGraphExec_t exec, musaGraphNode_t node, const struct musaKernelNodeParams* parameters);

// ---- profiler -------------------------------------------------------------------------------------------------

MUSA_PUBLIC musaError_t musaProfilerStart(void);
MUSA_PUBLIC musaError_t musaProfilerStop(void);

MUSA_EXTERN_C_END

#endif
