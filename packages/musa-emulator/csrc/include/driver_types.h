// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Types of the runtime API. Every enum and struct has a tag, because C callers write both `musaMemcpyKind` and `enum
// musaMemcpyKind`.
#ifndef MUSA_DRIVER_TYPES_H
#define MUSA_DRIVER_TYPES_H
#define __DRIVER_TYPES_H__ // checked by programs

#include <limits.h>
#include <stddef.h>

#include "host_defines.h"
#include "vector_types.h"

// ---- errors ---------------------------------------------------------------------------------------------------

enum musaError {
  musaSuccess = 0,
  musaErrorInvalidValue = 1,
  musaErrorMemoryAllocation = 2,
  musaErrorInitializationError = 3,
  musaErrorMusartUnloading = 4,
  musaErrorProfilerDisabled = 5,
  musaErrorProfilerNotInitialized = 6,
  musaErrorProfilerAlreadyStarted = 7,
  musaErrorProfilerAlreadyStopped = 8,
  musaErrorInvalidConfiguration = 9,
  musaErrorInvalidPitchValue = 12,
  musaErrorInvalidSymbol = 13,
  musaErrorInvalidHostPointer = 16,
  musaErrorInvalidDevicePointer = 17,
  musaErrorInvalidTexture = 18,
  musaErrorInvalidTextureBinding = 19,
  musaErrorInvalidChannelDescriptor = 20,
  musaErrorInvalidMemcpyDirection = 21,
  musaErrorAddressOfConstant = 22,
  musaErrorTextureFetchFailed = 23,
  musaErrorTextureNotBound = 24,
  musaErrorSynchronizationError = 25,
  musaErrorInvalidFilterSetting = 26,
  musaErrorInvalidNormSetting = 27,
  musaErrorMixedDeviceExecution = 28,
  musaErrorNotYetImplemented = 31,
  musaErrorMemoryValueTooLarge = 32,
  musaErrorStubLibrary = 34,
  musaErrorInsufficientDriver = 35,
  musaErrorCallRequiresNewerDriver = 36,
  musaErrorInvalidSurface = 37,
  musaErrorDuplicateVariableName = 43,
  musaErrorDuplicateTextureName = 44,
  musaErrorDuplicateSurfaceName = 45,
  musaErrorDevicesUnavailable = 46,
  musaErrorIncompatibleDriverContext = 49,
  musaErrorMissingConfiguration = 52,
  musaErrorPriorLaunchFailure = 53,
  musaErrorLaunchMaxDepthExceeded = 65,
  musaErrorLaunchFileScopedTex = 66,
  musaErrorLaunchFileScopedSurf = 67,
  musaErrorSyncDepthExceeded = 68,
  musaErrorLaunchPendingCountExceeded = 69,
  musaErrorInvalidDeviceFunction = 98,
  musaErrorNoDevice = 100,
  musaErrorInvalidDevice = 101,
  musaErrorDeviceNotLicensed = 102,
  musaErrorSoftwareValidityNotEstablished = 103,
  musaErrorStartupFailure = 127,
  musaErrorInvalidKernelImage = 200,
  musaErrorDeviceUninitialized = 201,
  musaErrorMapBufferObjectFailed = 205,
  musaErrorUnmapBufferObjectFailed = 206,
  musaErrorArrayIsMapped = 207,
  musaErrorAlreadyMapped = 208,
  musaErrorNoKernelImageForDevice = 209,
  musaErrorAlreadyAcquired = 210,
  musaErrorNotMapped = 211,
  musaErrorNotMappedAsArray = 212,
  musaErrorNotMappedAsPointer = 213,
  musaErrorECCUncorrectable = 214,
  musaErrorUnsupportedLimit = 215,
  musaErrorDeviceAlreadyInUse = 216,
  musaErrorPeerAccessUnsupported = 217,
  musaErrorInvalidPtx = 218,
  musaErrorInvalidGraphicsContext = 219,
  musaErrorMtlinkUncorrectable = 220,
  musaErrorJitCompilerNotFound = 221,
  musaErrorUnsupportedPtxVersion = 222,
  musaErrorJitCompilationDisabled = 223,
  musaErrorUnsupportedExecAffinity = 224,
  musaErrorInvalidSource = 300,
  musaErrorFileNotFound = 301,
  musaErrorSharedObjectSymbolNotFound = 302,
  musaErrorSharedObjectInitFailed = 303,
  musaErrorOperatingSystem = 304,
  musaErrorInvalidResourceHandle = 400,
  musaErrorIllegalState = 401,
  musaErrorSymbolNotFound = 500,
  musaErrorNotReady = 600,
  musaErrorIllegalAddress = 700,
  musaErrorLaunchOutOfResources = 701,
  musaErrorLaunchTimeout = 702,
  musaErrorLaunchIncompatibleTexturing = 703,
  musaErrorPeerAccessAlreadyEnabled = 704,
  musaErrorPeerAccessNotEnabled = 705,
  musaErrorSetOnActiveProcess = 708,
  musaErrorContextIsDestroyed = 709,
  musaErrorAssert = 710,
  musaErrorTooManyPeers = 711,
  musaErrorHostMemoryAlreadyRegistered = 712,
  musaErrorHostMemoryNotRegistered = 713,
  musaErrorHardwareStackError = 714,
  musaErrorIllegalInstruction = 715,
  musaErrorMisalignedAddress = 716,
  musaErrorInvalidAddressSpace = 717,
  musaErrorInvalidPc = 718,
  musaErrorLaunchFailure = 719,
  musaErrorCooperativeLaunchTooLarge = 720,
  musaErrorNotPermitted = 800,
  musaErrorNotSupported = 801,
  musaErrorSystemNotReady = 802,
  musaErrorSystemDriverMismatch = 803,
  musaErrorCompatNotSupportedOnDevice = 804,
  musaErrorStreamCaptureUnsupported = 900,
  musaErrorStreamCaptureInvalidated = 901,
  musaErrorStreamCaptureMerge = 902,
  musaErrorStreamCaptureUnmatched = 903,
  musaErrorStreamCaptureUnjoined = 904,
  musaErrorStreamCaptureIsolation = 905,
  musaErrorStreamCaptureImplicit = 906,
  musaErrorCapturedEvent = 907,
  musaErrorStreamCaptureWrongThread = 908,
  musaErrorTimeout = 909,
  musaErrorGraphExecUpdateFailure = 910,
  musaErrorExternalDevice = 911,
  musaErrorInvalidClusterSize = 912,
  musaErrorUnknown = 999,
  musaErrorApiFailureBase = 10000
};
typedef enum musaError musaError_t;

// ---- opaque handles -------------------------------------------------------------------------------------------

typedef struct MUstream_st* musaStream_t;
typedef struct MUevent_st* musaEvent_t;
typedef struct MUgraph_st* musaGraph_t;
typedef struct MUgraphNode_st* musaGraphNode_t;
typedef struct MUgraphExec_st* musaGraphExec_t;
typedef struct MUfunc_st* musaFunction_t;
typedef struct MUmemPoolHandle_st* musaMemPool_t;
typedef struct MUuserObject_st* musaUserObject_t;
typedef struct musaArray* musaArray_t;
typedef const struct musaArray* musaArray_const_t;
typedef struct musaMipmappedArray* musaMipmappedArray_t;
typedef unsigned long long musaTextureObject_t;

// Special handles: the device's legacy default stream, and the calling thread's default stream.
#define musaStreamLegacy ((musaStream_t)0x1)
#define musaStreamPerThread ((musaStream_t)0x2)

// ---- flags ----------------------------------------------------------------------------------------------------

#define musaHostAllocDefault 0x00
#define musaHostAllocPortable 0x01
#define musaHostAllocMapped 0x02
#define musaHostAllocWriteCombined 0x04

#define musaHostRegisterDefault 0x00
#define musaHostRegisterPortable 0x01
#define musaHostRegisterMapped 0x02
#define musaHostRegisterIoMemory 0x04
#define musaHostRegisterReadOnly 0x08

#define musaPeerAccessDefault 0x00

#define musaStreamDefault 0x00
#define musaStreamNonBlocking 0x01

#define musaEventDefault 0x00
#define musaEventBlockingSync 0x01
#define musaEventDisableTiming 0x02
#define musaEventInterprocess 0x04

#define musaEventRecordDefault 0x00
#define musaEventRecordExternal 0x01
#define musaEventWaitDefault 0x00
#define musaEventWaitExternal 0x01

#define musaDeviceScheduleAuto 0x00
#define musaDeviceScheduleSpin 0x01
#define musaDeviceScheduleYield 0x02
#define musaDeviceScheduleBlockingSync 0x04
#define musaDeviceMapHost 0x08
#define musaDeviceLmemResizeToMax 0x10

#define musaMemAttachGlobal 0x01
#define musaMemAttachHost 0x02
#define musaMemAttachSingle 0x04

#define musaIpcMemLazyEnablePeerAccess 0x01
#define MUSA_IPC_HANDLE_SIZE 64

#define musaCpuDeviceId ((int)-1)
#define musaInvalidDeviceId ((int)-2)

// ---- memory ---------------------------------------------------------------------------------------------------

enum musaMemcpyKind {
  musaMemcpyHostToHost = 0,
  musaMemcpyHostToDevice = 1,
  musaMemcpyDeviceToHost = 2,
  musaMemcpyDeviceToDevice = 3,
  musaMemcpyDefault = 4
};
typedef enum musaMemcpyKind musaMemcpyKind;
enum musaMemoryType {
  musaMemoryTypeUnregistered = 0,
  musaMemoryTypeHost = 1,
  musaMemoryTypeDevice = 2,
  musaMemoryTypeManaged = 3
};
typedef enum musaMemoryType musaMemoryType;

struct musaPointerAttributes {
  enum musaMemoryType type;
  int device;
  void* devicePointer;  // NULL if the device cannot access the memory
  void* hostPointer;    // NULL if the host cannot access the memory
};
typedef struct musaPointerAttributes musaPointerAttributes;

struct musaPitchedPtr {
  void* ptr;
  size_t pitch;
  size_t xsize;
  size_t ysize;
};
typedef struct musaPitchedPtr musaPitchedPtr;

struct musaExtent {
  size_t width;
  size_t height;
  size_t depth;
};
typedef struct musaExtent musaExtent;

struct musaPos {
  size_t x;
  size_t y;
  size_t z;
};
typedef struct musaPos musaPos;

struct musaMemcpy3DParms {
  musaArray_t srcArray;
  struct musaPos srcPos;
  struct musaPitchedPtr srcPtr;
  musaArray_t dstArray;
  struct musaPos dstPos;
  struct musaPitchedPtr dstPtr;
  struct musaExtent extent;
  enum musaMemcpyKind kind;
};
typedef struct musaMemcpy3DParms musaMemcpy3DParms;

struct musaMemsetParams {
  void* dst;
  size_t pitch;
  unsigned int value;
  unsigned int elementSize;
  size_t width;
  size_t height;
};
typedef struct musaMemsetParams musaMemsetParams;

typedef struct musaIpcMemHandle_st {
  char reserved[MUSA_IPC_HANDLE_SIZE];
} musaIpcMemHandle_t;

typedef struct musaIpcEventHandle_st {
  char reserved[MUSA_IPC_HANDLE_SIZE];
} musaIpcEventHandle_t;

enum musaMemoryAdvise {
  musaMemAdviseSetReadMostly = 1,
  musaMemAdviseUnsetReadMostly = 2,
  musaMemAdviseSetPreferredLocation = 3,
  musaMemAdviseUnsetPreferredLocation = 4,
  musaMemAdviseSetAccessedBy = 5,
  musaMemAdviseUnsetAccessedBy = 6
};
typedef enum musaMemoryAdvise musaMemoryAdvise;
enum musaMemPoolAttr {
  musaMemPoolReuseFollowEventDependencies = 1,
  musaMemPoolReuseAllowOpportunistic = 2,
  musaMemPoolReuseAllowInternalDependencies = 3,
  musaMemPoolAttrReleaseThreshold = 4,
  musaMemPoolAttrReservedMemCurrent = 5,
  musaMemPoolAttrReservedMemHigh = 6,
  musaMemPoolAttrUsedMemCurrent = 7,
  musaMemPoolAttrUsedMemHigh = 8
};
typedef enum musaMemPoolAttr musaMemPoolAttr;

static __inline__ struct musaExtent make_musaExtent(size_t width, size_t height, size_t depth) {
  struct musaExtent extent;
  extent.width = width;
  extent.height = height;
  extent.depth = depth;
  return extent;
}

static __inline__ struct musaPitchedPtr make_musaPitchedPtr(void* pointer, size_t pitch, size_t xsize, size_t ysize) {
  struct musaPitchedPtr pitched;
  pitched.ptr = pointer;
  pitched.pitch = pitch;
  pitched.xsize = xsize;
  pitched.ysize = ysize;
  return pitched;
}

static __inline__ struct musaPos make_musaPos(size_t x, size_t y, size_t z) {
  struct musaPos position;
  position.x = x;
  position.y = y;
  position.z = z;
  return position;
}

// ---- device ---------------------------------------------------------------------------------------------------

struct musaUUID_st {
  char bytes[16];
};
typedef struct musaUUID_st musaUUID_t;

struct musaDeviceProp {
  char name[256];
  musaUUID_t uuid;
  char luid[8];
  unsigned int luidDeviceNodeMask;
  size_t totalGlobalMem;
  size_t sharedMemPerBlock;
  int regsPerBlock;
  int warpSize;
  size_t memPitch;
  int maxThreadsPerBlock;
  int maxThreadsDim[3];
  int maxGridSize[3];
  int clockRate;  // kHz
  size_t totalConstMem;
  int major;
  int minor;
  size_t textureAlignment;
  size_t texturePitchAlignment;
  int deviceOverlap;
  int multiProcessorCount;
  int kernelExecTimeoutEnabled;
  int integrated;  // 1 if host and device share physical memory
  int canMapHostMemory;
  int computeMode;
  int maxTexture1D;
  int maxTexture1DMipmap;
  int maxTexture1DLinear;
  int maxTexture2D[2];
  int maxTexture2DMipmap[2];
  int maxTexture2DLinear[3];
  int maxTexture2DGather[2];
  int maxTexture3D[3];
  int maxTexture3DAlt[3];
  int maxTextureCubemap;
  int maxTexture1DLayered[2];
  int maxTexture2DLayered[3];
  int maxTextureCubemapLayered[2];
  int maxSurface1D;
  int maxSurface2D[2];
  int maxSurface3D[3];
  int maxSurface1DLayered[2];
  int maxSurface2DLayered[3];
  int maxSurfaceCubemap;
  int maxSurfaceCubemapLayered[2];
  size_t surfaceAlignment;
  int concurrentKernels;
  int ECCEnabled;
  int pciBusID;
  int pciDeviceID;
  int pciDomainID;
  int tccDriver;
  int asyncEngineCount;
  int unifiedAddressing;
  int memoryClockRate;  // kHz
  int memoryBusWidth;   // bits
  int l2CacheSize;      // bytes
  int persistingL2CacheMaxSize;
  int maxThreadsPerMultiProcessor;
  int streamPrioritiesSupported;
  int globalL1CacheSupported;
  int localL1CacheSupported;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor;
  int managedMemory;
  int isMultiGpuBoard;
  int multiGpuBoardGroupID;
  int hostNativeAtomicSupported;
  int singleToDoublePrecisionPerfRatio;
  int pageableMemoryAccess;
  int concurrentManagedAccess;
  int computePreemptionSupported;
  int canUseHostPointerForRegisteredMem;
  int cooperativeLaunch;
  int cooperativeMultiDeviceLaunch;
  size_t sharedMemPerBlockOptin;
  int pageableMemoryAccessUsesHostPageTables;
  int directManagedMemAccessFromHost;
  int maxBlocksPerMultiProcessor;
  int accessPolicyMaxWindowSize;
  size_t reservedSharedMemPerBlock;
  int hostRegisterSupported;
  int sparseMusaArraySupported;
  int hostRegisterReadOnlySupported;
  int timelineSemaphoreInteropSupported;
  int memoryPoolsSupported;
  int gpuDirectRDMASupported;
  unsigned int gpuDirectRDMAFlushWritesOptions;
  int gpuDirectRDMAWritesOrdering;
  unsigned int memoryPoolSupportedHandleTypes;
  int clusterLaunch;
  int reserved[64];
};
typedef struct musaDeviceProp musaDeviceProp;

enum musaDeviceAttr {
  musaDevAttrMaxThreadsPerBlock = 1,
  musaDevAttrMaxBlockDimX = 2,
  musaDevAttrMaxBlockDimY = 3,
  musaDevAttrMaxBlockDimZ = 4,
  musaDevAttrMaxGridDimX = 5,
  musaDevAttrMaxGridDimY = 6,
  musaDevAttrMaxGridDimZ = 7,
  musaDevAttrMaxSharedMemoryPerBlock = 8,
  musaDevAttrTotalConstantMemory = 9,
  musaDevAttrWarpSize = 10,
  musaDevAttrMaxPitch = 11,
  musaDevAttrMaxRegistersPerBlock = 12,
  musaDevAttrClockRate = 13,
  musaDevAttrTextureAlignment = 14,
  musaDevAttrGpuOverlap = 15,
  musaDevAttrMultiProcessorCount = 16,
  musaDevAttrKernelExecTimeout = 17,
  musaDevAttrIntegrated = 18,
  musaDevAttrCanMapHostMemory = 19,
  musaDevAttrComputeMode = 20,
  musaDevAttrMaxTexture1DWidth = 21,
  musaDevAttrMaxTexture2DWidth = 22,
  musaDevAttrMaxTexture2DHeight = 23,
  musaDevAttrMaxTexture3DWidth = 24,
  musaDevAttrMaxTexture3DHeight = 25,
  musaDevAttrMaxTexture3DDepth = 26,
  musaDevAttrSurfaceAlignment = 30,
  musaDevAttrConcurrentKernels = 31,
  musaDevAttrEccEnabled = 32,
  musaDevAttrPciBusId = 33,
  musaDevAttrPciDeviceId = 34,
  musaDevAttrTccDriver = 35,
  musaDevAttrMemoryClockRate = 36,
  musaDevAttrGlobalMemoryBusWidth = 37,
  musaDevAttrL2CacheSize = 38,
  musaDevAttrMaxThreadsPerMultiProcessor = 39,
  musaDevAttrAsyncEngineCount = 40,
  musaDevAttrUnifiedAddressing = 41,
  musaDevAttrPciDomainId = 50,
  musaDevAttrTexturePitchAlignment = 51,
  musaDevAttrComputeCapabilityMajor = 75,
  musaDevAttrComputeCapabilityMinor = 76,
  musaDevAttrStreamPrioritiesSupported = 78,
  musaDevAttrGlobalL1CacheSupported = 79,
  musaDevAttrLocalL1CacheSupported = 80,
  musaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
  musaDevAttrMaxRegistersPerMultiprocessor = 82,
  musaDevAttrManagedMemory = 83,
  musaDevAttrIsMultiGpuBoard = 84,
  musaDevAttrMultiGpuBoardGroupID = 85,
  musaDevAttrHostNativeAtomicSupported = 86,
  musaDevAttrSingleToDoublePrecisionPerfRatio = 87,
  musaDevAttrPageableMemoryAccess = 88,
  musaDevAttrConcurrentManagedAccess = 89,
  musaDevAttrComputePreemptionSupported = 90,
  musaDevAttrCanUseHostPointerForRegisteredMem = 91,
  musaDevAttrCooperativeLaunch = 95,
  musaDevAttrCooperativeMultiDeviceLaunch = 96,
  musaDevAttrMaxSharedMemoryPerBlockOptin = 97,
  musaDevAttrCanFlushRemoteWrites = 98,
  musaDevAttrHostRegisterSupported = 99,
  musaDevAttrPageableMemoryAccessUsesHostPageTables = 100,
  musaDevAttrDirectManagedMemAccessFromHost = 101,
  musaDevAttrMaxBlocksPerMultiprocessor = 106,
  musaDevAttrMaxPersistingL2CacheSize = 108,
  musaDevAttrMaxAccessPolicyWindowSize = 109,
  musaDevAttrReservedSharedMemoryPerBlock = 111,
  musaDevAttrSparseMusaArraySupported = 112,
  musaDevAttrHostRegisterReadOnlySupported = 113,
  musaDevAttrTimelineSemaphoreInteropSupported = 114,
  musaDevAttrMemoryPoolsSupported = 115,
  musaDevAttrGPUDirectRDMASupported = 116,
  musaDevAttrGPUDirectRDMAFlushWritesOptions = 117,
  musaDevAttrGPUDirectRDMAWritesOrdering = 118,
  musaDevAttrMemoryPoolSupportedHandleTypes = 119,
  musaDevAttrClusterLaunch = 120
};
typedef enum musaDeviceAttr musaDeviceAttr;

enum musaComputeMode {
  musaComputeModeDefault = 0,
  musaComputeModeExclusive = 1,
  musaComputeModeProhibited = 2,
  musaComputeModeExclusiveProcess = 3
};
typedef enum musaComputeMode musaComputeMode;
enum musaLimit {
  musaLimitStackSize = 0,
  musaLimitPrintfFifoSize = 1,
  musaLimitMallocHeapSize = 2,
  musaLimitDevRuntimeSyncDepth = 3,
  musaLimitDevRuntimePendingLaunchCount = 4,
  musaLimitMaxL2FetchGranularity = 5,
  musaLimitPersistingL2CacheSize = 6
};
typedef enum musaLimit musaLimit;
enum musaFuncCache {
  musaFuncCachePreferNone = 0,
  musaFuncCachePreferShared = 1,
  musaFuncCachePreferL1 = 2,
  musaFuncCachePreferEqual = 3
};
typedef enum musaFuncCache musaFuncCache;
enum musaSharedMemConfig {
  musaSharedMemBankSizeDefault = 0,
  musaSharedMemBankSizeFourByte = 1,
  musaSharedMemBankSizeEightByte = 2
};
typedef enum musaSharedMemConfig musaSharedMemConfig;

// ---- functions and launches -----------------------------------------------------------------------------------

struct musaFuncAttributes {
  size_t sharedSizeBytes;
  size_t constSizeBytes;
  size_t localSizeBytes;
  int maxThreadsPerBlock;
  int numRegs;
  int ptxVersion;
  int binaryVersion;
  int cacheModeCA;
  int maxDynamicSharedSizeBytes;
  int preferredShmemCarveout;
};
typedef struct musaFuncAttributes musaFuncAttributes;

enum musaFuncAttribute {
  musaFuncAttributeMaxDynamicSharedMemorySize = 8,
  musaFuncAttributePreferredSharedMemoryCarveout = 9,
  musaFuncAttributeMax = 10
};
typedef enum musaFuncAttribute musaFuncAttribute;
enum musaAccessProperty {
  musaAccessPropertyNormal = 0,
  musaAccessPropertyStreaming = 1,
  musaAccessPropertyPersisting = 2
};
typedef enum musaAccessProperty musaAccessProperty;

struct musaAccessPolicyWindow {
  void* base_ptr;
  size_t num_bytes;
  float hitRatio;
  enum musaAccessProperty hitProp;
  enum musaAccessProperty missProp;
};
typedef struct musaAccessPolicyWindow musaAccessPolicyWindow;

enum musaLaunchAttributeID {
  musaLaunchAttributeIgnore = 0,
  musaLaunchAttributeAccessPolicyWindow = 1,
  musaLaunchAttributeCooperative = 2,
  musaLaunchAttributeSynchronizationPolicy = 3,
  musaLaunchAttributeClusterDimension = 4,
  musaLaunchAttributeClusterSchedulingPolicyPreference = 5,
  musaLaunchAttributeProgrammaticStreamSerialization = 6,
  musaLaunchAttributeProgrammaticEvent = 7,
  musaLaunchAttributePriority = 8
};
typedef enum musaLaunchAttributeID musaLaunchAttributeID;
enum musaSynchronizationPolicy {
  musaSyncPolicyAuto = 1,
  musaSyncPolicySpin = 2,
  musaSyncPolicyYield = 3,
  musaSyncPolicyBlockingSync = 4
};
typedef enum musaSynchronizationPolicy musaSynchronizationPolicy;

union musaLaunchAttributeValue {
  char pad[64];
  struct musaAccessPolicyWindow accessPolicyWindow;
  int cooperative;
  enum musaSynchronizationPolicy syncPolicy;
  int programmaticStreamSerializationAllowed;
  int priority;
};
typedef union musaLaunchAttributeValue musaLaunchAttributeValue;

struct musaLaunchAttribute_st {
  enum musaLaunchAttributeID id;
  union musaLaunchAttributeValue val;
};
typedef struct musaLaunchAttribute_st musaLaunchAttribute;

struct musaLaunchConfig_st {
  dim3 gridDim;
  dim3 blockDim;
  size_t dynamicSmemBytes;
  musaStream_t stream;
  musaLaunchAttribute* attrs;
  unsigned int numAttrs;
};
typedef struct musaLaunchConfig_st musaLaunchConfig_t;

// ---- streams --------------------------------------------------------------------------------------------------

typedef void(MUSART_CB* musaHostFn_t)(void* userData);
typedef void(MUSART_CB* musaStreamCallback_t)(musaStream_t stream, musaError_t status, void* userData);

typedef musaLaunchAttributeValue musaStreamAttrValue;
typedef enum musaLaunchAttributeID musaStreamAttrID;
#define musaStreamAttributeAccessPolicyWindow musaLaunchAttributeAccessPolicyWindow
#define musaStreamAttributeSynchronizationPolicy musaLaunchAttributeSynchronizationPolicy

enum musaStreamCaptureStatus {
  musaStreamCaptureStatusNone = 0,
  musaStreamCaptureStatusActive = 1,
  musaStreamCaptureStatusInvalidated = 2
};
typedef enum musaStreamCaptureStatus musaStreamCaptureStatus;
enum musaStreamCaptureMode {
  musaStreamCaptureModeGlobal = 0,
  musaStreamCaptureModeThreadLocal = 1,
  musaStreamCaptureModeRelaxed = 2
};
typedef enum musaStreamCaptureMode musaStreamCaptureMode;

// ---- graphs ---------------------------------------------------------------------------------------------------

enum musaGraphNodeType {
  musaGraphNodeTypeKernel = 0,
  musaGraphNodeTypeMemcpy = 1,
  musaGraphNodeTypeMemset = 2,
  musaGraphNodeTypeHost = 3,
  musaGraphNodeTypeGraph = 4,
  musaGraphNodeTypeEmpty = 5,
  musaGraphNodeTypeWaitEvent = 6,
  musaGraphNodeTypeEventRecord = 7,
  musaGraphNodeTypeExtSemaphoreSignal = 8,
  musaGraphNodeTypeExtSemaphoreWait = 9,
  musaGraphNodeTypeMemAlloc = 10,
  musaGraphNodeTypeMemFree = 11,
  musaGraphNodeTypeCount = 12
};
typedef enum musaGraphNodeType musaGraphNodeType;
enum musaGraphExecUpdateResult {
  musaGraphExecUpdateSuccess = 0,
  musaGraphExecUpdateError = 1,
  musaGraphExecUpdateErrorTopologyChanged = 2,
  musaGraphExecUpdateErrorNodeTypeChanged = 3,
  musaGraphExecUpdateErrorFunctionChanged = 4,
  musaGraphExecUpdateErrorParametersChanged = 5,
  musaGraphExecUpdateErrorAttributesChanged = 6,
  musaGraphExecUpdateErrorNotSupported = 7
};
typedef enum musaGraphExecUpdateResult musaGraphExecUpdateResult;
enum musaGraphInstantiateFlags {
  musaGraphInstantiateFlagAutoFreeOnLaunch = 1,
  musaGraphInstantiateFlagUpload = 2,
  musaGraphInstantiateFlagDeviceLaunch = 4,
  musaGraphInstantiateFlagUseNodePriority = 8
};
typedef enum musaGraphInstantiateFlags musaGraphInstantiateFlags;
enum musaGraphDebugDotFlags {
  musaGraphDebugDotFlagsVerbose = 1 << 0,
  musaGraphDebugDotFlagsKernelNodeParams = 1 << 2,
  musaGraphDebugDotFlagsMemcpyNodeParams = 1 << 3,
  musaGraphDebugDotFlagsMemsetNodeParams = 1 << 4,
  musaGraphDebugDotFlagsHostNodeParams = 1 << 5,
  musaGraphDebugDotFlagsEventNodeParams = 1 << 6,
  musaGraphDebugDotFlagsHandles = 1 << 10
};
typedef enum musaGraphDebugDotFlags musaGraphDebugDotFlags;

struct musaGraphExecUpdateResultInfo_st {
  enum musaGraphExecUpdateResult result;
  musaGraphNode_t errorNode;
  musaGraphNode_t errorFromNode;
};
typedef struct musaGraphExecUpdateResultInfo_st musaGraphExecUpdateResultInfo;

struct musaKernelNodeParams {
  void* func;
  dim3 gridDim;
  dim3 blockDim;
  unsigned int sharedMemBytes;
  void** kernelParams;
  void** extra;
};
typedef struct musaKernelNodeParams musaKernelNodeParams;

struct musaHostNodeParams {
  musaHostFn_t fn;
  void* userData;
};
typedef struct musaHostNodeParams musaHostNodeParams;

#endif
