// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Driver API (libmusa). Stream and event handles are those of the runtime.
#ifndef MUSA_H
#define MUSA_H

#include <stddef.h>

#include "host_defines.h"

#define MUSA_VERSION 40301

typedef int MUdevice;
typedef unsigned long long MUdeviceptr;
typedef unsigned long long MUmemGenericAllocationHandle;
typedef struct MUctx_st* MUcontext;
typedef struct MUstream_st* MUstream;
typedef struct MUevent_st* MUevent;
typedef struct MUmod_st* MUmodule;
typedef struct MUfunc_st* MUfunction;
typedef void (*MUhostFn)(void* userData);

typedef enum musaError_enum {
  MUSA_SUCCESS = 0,
  MUSA_ERROR_INVALID_VALUE = 1,
  MUSA_ERROR_OUT_OF_MEMORY = 2,
  MUSA_ERROR_NOT_INITIALIZED = 3,
  MUSA_ERROR_DEINITIALIZED = 4,
  MUSA_ERROR_PROFILER_DISABLED = 5,
  MUSA_ERROR_STUB_LIBRARY = 34,
  MUSA_ERROR_DEVICE_UNAVAILABLE = 46,
  MUSA_ERROR_NO_DEVICE = 100,
  MUSA_ERROR_INVALID_DEVICE = 101,
  MUSA_ERROR_DEVICE_NOT_LICENSED = 102,
  MUSA_ERROR_INVALID_IMAGE = 200,
  MUSA_ERROR_INVALID_CONTEXT = 201,
  MUSA_ERROR_MAP_FAILED = 205,
  MUSA_ERROR_UNMAP_FAILED = 206,
  MUSA_ERROR_ALREADY_MAPPED = 208,
  MUSA_ERROR_NO_BINARY_FOR_GPU = 209,
  MUSA_ERROR_NOT_MAPPED = 211,
  MUSA_ERROR_ECC_UNCORRECTABLE = 214,
  MUSA_ERROR_UNSUPPORTED_LIMIT = 215,
  MUSA_ERROR_CONTEXT_ALREADY_IN_USE = 216,
  MUSA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
  MUSA_ERROR_MTLINK_UNCORRECTABLE = 220,
  MUSA_ERROR_INVALID_SOURCE = 300,
  MUSA_ERROR_FILE_NOT_FOUND = 301,
  MUSA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND = 302,
  MUSA_ERROR_SHARED_OBJECT_INIT_FAILED = 303,
  MUSA_ERROR_OPERATING_SYSTEM = 304,
  MUSA_ERROR_INVALID_HANDLE = 400,
  MUSA_ERROR_ILLEGAL_STATE = 401,
  MUSA_ERROR_NOT_FOUND = 500,
  MUSA_ERROR_NOT_READY = 600,
  MUSA_ERROR_ILLEGAL_ADDRESS = 700,
  MUSA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  MUSA_ERROR_LAUNCH_TIMEOUT = 702,
  MUSA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
  MUSA_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
  MUSA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708,
  MUSA_ERROR_CONTEXT_IS_DESTROYED = 709,
  MUSA_ERROR_ASSERT = 710,
  MUSA_ERROR_TOO_MANY_PEERS = 711,
  MUSA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
  MUSA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
  MUSA_ERROR_HARDWARE_STACK_ERROR = 714,
  MUSA_ERROR_ILLEGAL_INSTRUCTION = 715,
  MUSA_ERROR_MISALIGNED_ADDRESS = 716,
  MUSA_ERROR_INVALID_ADDRESS_SPACE = 717,
  MUSA_ERROR_INVALID_PC = 718,
  MUSA_ERROR_LAUNCH_FAILED = 719,
  MUSA_ERROR_NOT_PERMITTED = 800,
  MUSA_ERROR_NOT_SUPPORTED = 801,
  MUSA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  MUSA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  MUSA_ERROR_STREAM_CAPTURE_MERGE = 902,
  MUSA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
  MUSA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
  MUSA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
  MUSA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
  MUSA_ERROR_CAPTURED_EVENT = 907,
  MUSA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
  MUSA_ERROR_TIMEOUT = 909,
  MUSA_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910,
  MUSA_ERROR_EXTERNAL_DEVICE = 911,
  MUSA_ERROR_INVALID_CLUSTER_SIZE = 912,
  MUSA_ERROR_INVALID_RESOURCE_TYPE = 914,
  MUSA_ERROR_INVALID_RESOURCE_CONFIGURATION = 915,
  MUSA_ERROR_UNKNOWN = 999
} MUresult;

typedef enum MUdevice_attribute_enum {
  MU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
  MU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
  MU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y = 3,
  MU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z = 4,
  MU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,
  MU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y = 6,
  MU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z = 7,
  MU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
  MU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY = 9,
  MU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
  MU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK = 12,
  MU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
  MU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  MU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
  MU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY = 19,
  MU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20,
  MU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS = 31,
  MU_DEVICE_ATTRIBUTE_ECC_ENABLED = 32,
  MU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
  MU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
  MU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
  MU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
  MU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
  MU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
  MU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT = 40,
  MU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
  MU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
  MU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  MU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  MU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED = 78,
  MU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
  MU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
  MU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = 83,
  MU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD = 84,
  MU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID = 85,
  MU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH = 95,
  MU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  MU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED = 99,
  MU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED = 102,
  MU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
  MU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR = 106,
  MU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115
} MUdevice_attribute;

typedef enum MUmemorytype_enum {
  MU_MEMORYTYPE_HOST = 1,
  MU_MEMORYTYPE_DEVICE = 2,
  MU_MEMORYTYPE_ARRAY = 3,
  MU_MEMORYTYPE_UNIFIED = 4
} MUmemorytype;

typedef enum MUpointer_attribute_enum {
  MU_POINTER_ATTRIBUTE_CONTEXT = 1,
  MU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
  MU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
  MU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
  MU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
  MU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
  MU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
  MU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
  MU_POINTER_ATTRIBUTE_RANGE_SIZE = 12
} MUpointer_attribute;

// Virtual memory management.
typedef enum MUmemAllocationType_enum {
  MU_MEM_ALLOCATION_TYPE_INVALID = 0,
  MU_MEM_ALLOCATION_TYPE_PINNED = 1
} MUmemAllocationType;

typedef enum MUmemAllocationHandleType_enum {
  MU_MEM_HANDLE_TYPE_NONE = 0,
  MU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1
} MUmemAllocationHandleType;

typedef enum MUmemLocationType_enum {
  MU_MEM_LOCATION_TYPE_INVALID = 0,
  MU_MEM_LOCATION_TYPE_DEVICE = 1
} MUmemLocationType;

typedef enum MUmemAccess_flags_enum {
  MU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
  MU_MEM_ACCESS_FLAGS_PROT_READ = 1,
  MU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3
} MUmemAccess_flags;

typedef enum MUmemAllocationGranularity_flags_enum {
  MU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
  MU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1
} MUmemAllocationGranularity_flags;

typedef struct MUmemLocation_st {
  MUmemLocationType type;
  int id;
} MUmemLocation;

typedef struct MUmemAllocationProp_st {
  MUmemAllocationType type;
  MUmemAllocationHandleType requestedHandleTypes;
  MUmemLocation location;
  void* win32HandleMetaData;
  struct {
    unsigned char compressionType;
    unsigned char gpuDirectRDMACapable;
    unsigned short usage;
    unsigned char reserved[4];
  } allocFlags;
} MUmemAllocationProp;

typedef struct MUmemAccessDesc_st {
  MUmemLocation location;
  MUmemAccess_flags flags;
} MUmemAccessDesc;

// ---- modules and launches

#define MU_LAUNCH_PARAM_END ((void*)0x00)
#define MU_LAUNCH_PARAM_BUFFER_POINTER ((void*)0x01)
#define MU_LAUNCH_PARAM_BUFFER_SIZE ((void*)0x02)

typedef enum MUfunction_attribute_enum {
  MU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
  MU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  MU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2,
  MU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
  MU_FUNC_ATTRIBUTE_NUM_REGS = 4,
  MU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  MU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9
} MUfunction_attribute;

typedef enum MUfunc_cache_enum {
  MU_FUNC_CACHE_PREFER_NONE = 0,
  MU_FUNC_CACHE_PREFER_SHARED = 1,
  MU_FUNC_CACHE_PREFER_L1 = 2,
  MU_FUNC_CACHE_PREFER_EQUAL = 3
} MUfunc_cache;

typedef enum MUlaunchAttributeID_enum {
  MU_LAUNCH_ATTRIBUTE_IGNORE = 0,
  MU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2
} MUlaunchAttributeID;
typedef union MUlaunchAttributeValue_union {
  char pad[64];
  int cooperative;
} MUlaunchAttributeValue;
typedef struct MUlaunchAttribute_st {
  MUlaunchAttributeID id;
  char pad[8 - sizeof(MUlaunchAttributeID)];
  MUlaunchAttributeValue value;
} MUlaunchAttribute;
typedef struct MUlaunchConfig_st {
  unsigned int gridDimX, gridDimY, gridDimZ;
  unsigned int blockDimX, blockDimY, blockDimZ;
  unsigned int sharedMemBytes;
  MUstream hStream;
  MUlaunchAttribute* attrs;
  unsigned int numAttrs;
} MUlaunchConfig;

#define MU_CTX_SCHED_AUTO 0x00
#define MU_CTX_SCHED_SPIN 0x01
#define MU_CTX_SCHED_YIELD 0x02
#define MU_CTX_SCHED_BLOCKING_SYNC 0x04
#define MU_CTX_MAP_HOST 0x08

// ---- 2D and 3D copies. Coordinates and widths are in bytes.

typedef struct MUarray_st* MUarray;

typedef struct MUSA_MEMCPY2D_st {
  size_t srcXInBytes, srcY;
  MUmemorytype srcMemoryType;
  const void* srcHost;
  MUdeviceptr srcDevice;
  MUarray srcArray;
  size_t srcPitch;
  size_t dstXInBytes, dstY;
  MUmemorytype dstMemoryType;
  void* dstHost;
  MUdeviceptr dstDevice;
  MUarray dstArray;
  size_t dstPitch;
  size_t WidthInBytes, Height;
} MUSA_MEMCPY2D;

typedef struct MUSA_MEMCPY3D_st {
  size_t srcXInBytes, srcY, srcZ, srcLOD;
  MUmemorytype srcMemoryType;
  const void* srcHost;
  MUdeviceptr srcDevice;
  MUarray srcArray;
  void* reserved0;
  size_t srcPitch, srcHeight;
  size_t dstXInBytes, dstY, dstZ, dstLOD;
  MUmemorytype dstMemoryType;
  void* dstHost;
  MUdeviceptr dstDevice;
  MUarray dstArray;
  void* reserved1;
  size_t dstPitch, dstHeight;
  size_t WidthInBytes, Height, Depth;
} MUSA_MEMCPY3D;

#define MU_STREAM_DEFAULT 0
#define MU_STREAM_NON_BLOCKING 1
#define MU_EVENT_DEFAULT 0
#define MU_EVENT_BLOCKING_SYNC 1
#define MU_EVENT_DISABLE_TIMING 2
#define MU_EVENT_INTERPROCESS 4

MUSA_EXTERN_C_BEGIN

MUSA_PUBLIC MUresult muInit(unsigned int flags);
MUSA_PUBLIC MUresult muDriverGetVersion(int* version);
MUSA_PUBLIC MUresult muGetErrorString(MUresult error, const char** text);
MUSA_PUBLIC MUresult muGetErrorName(MUresult error, const char** text);

MUSA_PUBLIC MUresult muDeviceGet(MUdevice* device, int ordinal);
MUSA_PUBLIC MUresult muDeviceGetCount(int* count);
MUSA_PUBLIC MUresult muDeviceGetName(char* name, int length, MUdevice device);
MUSA_PUBLIC MUresult muDeviceTotalMem(size_t* bytes, MUdevice device);
MUSA_PUBLIC MUresult muDeviceGetAttribute(int* value, MUdevice_attribute attribute, MUdevice device);
MUSA_PUBLIC MUresult muDevicePrimaryCtxGetState(MUdevice device, unsigned int* flags, int* active);
MUSA_PUBLIC MUresult muDevicePrimaryCtxRetain(MUcontext* context, MUdevice device);
MUSA_PUBLIC MUresult muDevicePrimaryCtxRelease(MUdevice device);
MUSA_PUBLIC MUresult muCtxGetCurrent(MUcontext* context);
MUSA_PUBLIC MUresult muCtxSetCurrent(MUcontext context);
MUSA_PUBLIC MUresult muCtxGetDevice(MUdevice* device);
MUSA_PUBLIC MUresult muCtxSynchronize(void);
// All contexts of a device share its memory: each is the device's primary context here, and becomes current.
MUSA_PUBLIC MUresult muCtxCreate(MUcontext* context, unsigned int flags, MUdevice device);
MUSA_PUBLIC MUresult muCtxDestroy(MUcontext context);
MUSA_PUBLIC MUresult muCtxPushCurrent(MUcontext context);
MUSA_PUBLIC MUresult muCtxPopCurrent(MUcontext* context);
MUSA_PUBLIC MUresult muCtxGetFlags(unsigned int* flags);
MUSA_PUBLIC MUresult muCtxGetCacheConfig(MUfunc_cache* config);
MUSA_PUBLIC MUresult muCtxGetStreamPriorityRange(int* leastPriority, int* greatestPriority);

// A module is a file that `mcc -fatbin` wrote, or its bytes. Kernels are looked up by symbol name: the plain name if
// declared extern "C", else the mangled name.
MUSA_PUBLIC MUresult muModuleLoad(MUmodule* module, const char* path);
MUSA_PUBLIC MUresult muModuleLoadData(MUmodule* module, const void* image);
MUSA_PUBLIC MUresult muModuleLoadFatBinary(MUmodule* module, const void* image);
MUSA_PUBLIC MUresult muModuleUnload(MUmodule module);
MUSA_PUBLIC MUresult muModuleGetFunction(MUfunction* function, MUmodule module, const char* name);
// Returns the address and size of a variable of the module.
MUSA_PUBLIC MUresult muModuleGetGlobal(MUdeviceptr* pointer, size_t* bytes, MUmodule module, const char* name);
MUSA_PUBLIC MUresult muFuncGetAttribute(int* value, MUfunction_attribute attribute, MUfunction function);
MUSA_PUBLIC MUresult muFuncSetAttribute(MUfunction function, MUfunction_attribute attribute, int value);
MUSA_PUBLIC MUresult muFuncSetCacheConfig(MUfunction function, MUfunc_cache config);
MUSA_PUBLIC MUresult
muOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, MUfunction function, int blockSize, size_t dynamicSharedBytes);
// Arguments are an array of addresses, or a packed buffer in `extra`.
MUSA_PUBLIC MUresult muLaunchKernel(
    MUfunction function, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
    unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes, MUstream stream, void** kernelParams,
    void** extra);
MUSA_PUBLIC MUresult
muLaunchKernelEx(const MUlaunchConfig* config, MUfunction function, void** kernelParams, void** extra);

MUSA_PUBLIC MUresult muMemAlloc(MUdeviceptr* pointer, size_t bytes);
MUSA_PUBLIC MUresult
muMemAllocPitch(MUdeviceptr* pointer, size_t* pitch, size_t widthInBytes, size_t height, unsigned int elementSizeBytes);
MUSA_PUBLIC MUresult muMemFree(MUdeviceptr pointer);
// For host and device memory; returns MUSA_ERROR_NOT_SUPPORTED for arrays.
MUSA_PUBLIC MUresult muMemcpy2D(const MUSA_MEMCPY2D* copy);
MUSA_PUBLIC MUresult muMemcpy2DAsync(const MUSA_MEMCPY2D* copy, MUstream stream);
MUSA_PUBLIC MUresult muMemcpy3D(const MUSA_MEMCPY3D* copy);
MUSA_PUBLIC MUresult muMemcpy3DAsync(const MUSA_MEMCPY3D* copy, MUstream stream);
MUSA_PUBLIC MUresult muMemGetInfo(size_t* free, size_t* total);
MUSA_PUBLIC MUresult muMemGetAddressRange(MUdeviceptr* base, size_t* bytes, MUdeviceptr pointer);
MUSA_PUBLIC MUresult muMemcpyHtoD(MUdeviceptr dst, const void* src, size_t bytes);
MUSA_PUBLIC MUresult muMemcpyDtoH(void* dst, MUdeviceptr src, size_t bytes);
MUSA_PUBLIC MUresult muMemcpyDtoD(MUdeviceptr dst, MUdeviceptr src, size_t bytes);
MUSA_PUBLIC MUresult muMemcpyHtoDAsync(MUdeviceptr dst, const void* src, size_t bytes, MUstream stream);
MUSA_PUBLIC MUresult muMemcpyDtoHAsync(void* dst, MUdeviceptr src, size_t bytes, MUstream stream);
MUSA_PUBLIC MUresult muMemcpyDtoDAsync(MUdeviceptr dst, MUdeviceptr src, size_t bytes, MUstream stream);
MUSA_PUBLIC MUresult muMemsetD8(MUdeviceptr dst, unsigned char value, size_t count);
MUSA_PUBLIC MUresult muMemsetD8Async(MUdeviceptr dst, unsigned char value, size_t count, MUstream stream);
MUSA_PUBLIC MUresult muMemsetD32(MUdeviceptr dst, unsigned int value, size_t count);
MUSA_PUBLIC MUresult muMemsetD32Async(MUdeviceptr dst, unsigned int value, size_t count, MUstream stream);
MUSA_PUBLIC MUresult muPointerGetAttribute(void* data, MUpointer_attribute attribute, MUdeviceptr pointer);

// Sizes and addresses must be multiples of the granularity. Access to a range that is only reserved, or mapped
// without muMemSetAccess, faults.
MUSA_PUBLIC MUresult muMemGetAllocationGranularity(
    size_t* granularity, const MUmemAllocationProp* prop, MUmemAllocationGranularity_flags option);
MUSA_PUBLIC MUresult
muMemAddressReserve(MUdeviceptr* pointer, size_t size, size_t alignment, MUdeviceptr address, unsigned long long flags);
MUSA_PUBLIC MUresult muMemAddressFree(MUdeviceptr pointer, size_t size);
MUSA_PUBLIC MUresult muMemCreate(
    MUmemGenericAllocationHandle* handle, size_t size, const MUmemAllocationProp* prop, unsigned long long flags);
MUSA_PUBLIC MUresult muMemRelease(MUmemGenericAllocationHandle handle);
MUSA_PUBLIC MUresult muMemMap(
    MUdeviceptr pointer, size_t size, size_t offset, MUmemGenericAllocationHandle handle, unsigned long long flags);
MUSA_PUBLIC MUresult muMemUnmap(MUdeviceptr pointer, size_t size);
MUSA_PUBLIC MUresult muMemSetAccess(MUdeviceptr pointer, size_t size, const MUmemAccessDesc* desc, size_t count);
// A POSIX file descriptor: exporting writes it to `shareable` (int*), importing takes its value in `shareable`.
MUSA_PUBLIC MUresult muMemExportToShareableHandle(
    void* shareable, MUmemGenericAllocationHandle handle, MUmemAllocationHandleType type, unsigned long long flags);
MUSA_PUBLIC MUresult
muMemImportFromShareableHandle(MUmemGenericAllocationHandle* handle, void* shareable, MUmemAllocationHandleType type);

MUSA_PUBLIC MUresult muStreamCreate(MUstream* stream, unsigned int flags);
MUSA_PUBLIC MUresult muStreamDestroy(MUstream stream);
MUSA_PUBLIC MUresult muStreamSynchronize(MUstream stream);
MUSA_PUBLIC MUresult muStreamQuery(MUstream stream);
MUSA_PUBLIC MUresult muStreamWaitEvent(MUstream stream, MUevent event, unsigned int flags);
MUSA_PUBLIC MUresult muLaunchHostFunc(MUstream stream, MUhostFn fn, void* userData);
MUSA_PUBLIC MUresult muEventCreate(MUevent* event, unsigned int flags);
MUSA_PUBLIC MUresult muEventDestroy(MUevent event);
MUSA_PUBLIC MUresult muEventRecord(MUevent event, MUstream stream);
MUSA_PUBLIC MUresult muEventQuery(MUevent event);
MUSA_PUBLIC MUresult muEventSynchronize(MUevent event);
MUSA_PUBLIC MUresult muEventElapsedTime(float* milliseconds, MUevent start, MUevent end);

MUSA_EXTERN_C_END

#endif
