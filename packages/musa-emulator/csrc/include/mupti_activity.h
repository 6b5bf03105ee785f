// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Activity records: API calls, work on the devices, and the call that enqueued each piece of work.
//
// The caller provides buffers for records through two callbacks. Times are nanoseconds since the Unix epoch. A
// correlation id identifies one call; work has the id of the call that enqueued it, and all work of a graph has the
// id of the graph launch. A context id is the device ordinal + 1.
#ifndef MUPTI_ACTIVITY_H
#define MUPTI_ACTIVITY_H

#include <stddef.h>
#include <stdint.h>

#include "musa.h"
#include "mupti_callbacks.h"
#include "mupti_result.h"

typedef enum {
  MUPTI_ACTIVITY_KIND_INVALID = 0,
  MUPTI_ACTIVITY_KIND_MEMCPY = 1,
  MUPTI_ACTIVITY_KIND_MEMSET = 2,
  MUPTI_ACTIVITY_KIND_KERNEL = 3,
  MUPTI_ACTIVITY_KIND_DRIVER = 4,
  MUPTI_ACTIVITY_KIND_RUNTIME = 5,
  MUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL = 10,
  MUPTI_ACTIVITY_KIND_OVERHEAD = 17,
  MUPTI_ACTIVITY_KIND_MEMCPY2 = 22,
  MUPTI_ACTIVITY_KIND_SYNCHRONIZATION = 38,
  MUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION = 39,
  MUPTI_ACTIVITY_KIND_FORCE_INT = 0x7fffffff
} MUpti_ActivityKind;

typedef enum {
  MUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN = 0,
  MUPTI_ACTIVITY_MEMCPY_KIND_HTOD = 1,
  MUPTI_ACTIVITY_MEMCPY_KIND_DTOH = 2,
  MUPTI_ACTIVITY_MEMCPY_KIND_DTOD = 8,
  MUPTI_ACTIVITY_MEMCPY_KIND_HTOH = 9,
  MUPTI_ACTIVITY_MEMCPY_KIND_PTOP = 10,
  MUPTI_ACTIVITY_MEMCPY_KIND_FORCE_INT = 0x7fffffff
} MUpti_ActivityMemcpyKind;

typedef enum {
  MUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN = 0,
  MUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE = 1,
  MUPTI_ACTIVITY_MEMORY_KIND_PINNED = 2,
  MUPTI_ACTIVITY_MEMORY_KIND_DEVICE = 3,
  MUPTI_ACTIVITY_MEMORY_KIND_ARRAY = 4,
  MUPTI_ACTIVITY_MEMORY_KIND_MANAGED = 5,
  MUPTI_ACTIVITY_MEMORY_KIND_FORCE_INT = 0x7fffffff
} MUpti_ActivityMemoryKind;

typedef enum {
  MUPTI_ACTIVITY_FLAG_NONE = 0,
  MUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC = 1, /* for copies */
  MUPTI_ACTIVITY_FLAG_MEMSET_ASYNC = 1, /* for fills */
  MUPTI_ACTIVITY_FLAG_FLUSH_FORCED = 1, /* for muptiActivityFlushAll */
  MUPTI_ACTIVITY_FLAG_FORCE_INT = 0x7fffffff
} MUpti_ActivityFlag;

typedef enum {
  MUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN = 0,
  MUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE = 1,
  MUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT = 2,
  MUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE = 3,
  MUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE = 4,
  MUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_FORCE_INT = 0x7fffffff
} MUpti_ActivitySynchronizationType;

typedef enum {
  MUPTI_EXTERNAL_CORRELATION_KIND_INVALID = 0,
  MUPTI_EXTERNAL_CORRELATION_KIND_UNKNOWN = 1,
  MUPTI_EXTERNAL_CORRELATION_KIND_OPENACC = 2,
  MUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0 = 3,
  MUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1 = 4,
  MUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2 = 5,
  MUPTI_EXTERNAL_CORRELATION_KIND_SIZE,
  MUPTI_EXTERNAL_CORRELATION_KIND_FORCE_INT = 0x7fffffff
} MUpti_ExternalCorrelationKind;

typedef enum {
  MUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE = 0,
  MUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT = 2,
  MUPTI_ACTIVITY_ATTR_FORCE_INT = 0x7fffffff
} MUpti_ActivityAttribute;

#define MUPTI_CORRELATION_ID_UNKNOWN 0
#define MUPTI_SYNCHRONIZATION_INVALID_VALUE ((uint32_t)-1)

/* Every record starts with its kind, is aligned to 8 bytes and has the size of its type. */
typedef struct {
  MUpti_ActivityKind kind;
} MUpti_Activity;

/* RUNTIME and DRIVER. cbid: mupti_runtime_cbid.h, mupti_driver_cbid.h. */
typedef struct {
  MUpti_ActivityKind kind;
  MUpti_CallbackId cbid;
  uint64_t start;
  uint64_t end;
  uint32_t processId;
  uint32_t threadId; /* the low 32 bits of pthread_self() */
  uint32_t correlationId;
  uint32_t returnValue;
} MUpti_ActivityAPI;

/* KERNEL and CONCURRENT_KERNEL. */
typedef struct {
  MUpti_ActivityKind kind;
  uint16_t registersPerThread;
  uint64_t start;
  uint64_t end;
  uint32_t deviceId;
  uint32_t contextId;
  uint32_t streamId;
  int32_t gridX;
  int32_t gridY;
  int32_t gridZ;
  int32_t blockX;
  int32_t blockY;
  int32_t blockZ;
  int32_t staticSharedMemory;
  int32_t dynamicSharedMemory;
  uint32_t localMemoryPerThread;
  uint32_t localMemoryTotal;
  uint32_t correlationId;
  int64_t gridId;
  const char* name; /* never freed */
  uint64_t queued;
  uint64_t submitted;
} MUpti_ActivityKernel4;
typedef MUpti_ActivityKernel4 MUpti_ActivityKernel6;

/* MEMCPY. The kinds are MUpti_ActivityMemcpyKind and MUpti_ActivityMemoryKind. */
typedef struct {
  MUpti_ActivityKind kind;
  uint8_t copyKind;
  uint8_t srcKind;
  uint8_t dstKind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t deviceId;
  uint32_t contextId;
  uint32_t streamId;
  uint32_t correlationId;
} MUpti_ActivityMemcpy;
typedef MUpti_ActivityMemcpy MUpti_ActivityMemcpy4;

/* MEMCPY2: a copy between two devices. */
typedef struct {
  MUpti_ActivityKind kind;
  uint8_t copyKind;
  uint8_t srcKind;
  uint8_t dstKind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t deviceId; /* of the stream that copies */
  uint32_t contextId;
  uint32_t streamId;
  uint32_t srcDeviceId;
  uint32_t srcContextId;
  uint32_t dstDeviceId;
  uint32_t dstContextId;
  uint32_t correlationId;
} MUpti_ActivityMemcpy2;

typedef struct {
  MUpti_ActivityKind kind;
  uint32_t value;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t deviceId;
  uint32_t contextId;
  uint32_t streamId;
  uint32_t correlationId;
  uint16_t flags;
  uint16_t memoryKind;
} MUpti_ActivityMemset;

/* A wait of the host, or of a stream for an event. */
typedef struct {
  MUpti_ActivityKind kind;
  MUpti_ActivitySynchronizationType type;
  uint64_t start;
  uint64_t end;
  uint32_t correlationId;
  uint32_t contextId;
  uint32_t streamId; /* MUPTI_SYNCHRONIZATION_INVALID_VALUE for all streams */
  uint32_t musaEventId; /* MUPTI_SYNCHRONIZATION_INVALID_VALUE */
} MUpti_ActivitySynchronization;

/* The innermost id on the calling thread's stack when it made the call with this correlationId; one record per kind.
   */
typedef struct {
  MUpti_ActivityKind kind;
  MUpti_ExternalCorrelationKind externalKind;
  uint64_t externalId;
  uint32_t correlationId;
  uint32_t reserved;
} MUpti_ActivityExternalCorrelation;

typedef enum {
  MUPTI_ACTIVITY_OVERHEAD_UNKNOWN = 0,
  MUPTI_ACTIVITY_OVERHEAD_MUPTI_BUFFER_FLUSH = 1 << 16,
  MUPTI_ACTIVITY_OVERHEAD_FORCE_INT = 0x7fffffff
} MUpti_ActivityOverheadKind;

/* Time spent by the profiler itself. */
typedef struct {
  MUpti_ActivityKind kind;
  MUpti_ActivityOverheadKind overheadKind;
  uint64_t start;
  uint64_t end;
  uint32_t processId;
  uint32_t threadId;
} MUpti_ActivityOverhead;

/* Requests a buffer, aligned to 8 bytes. maxNumRecords 0: as many as fit. With a null buffer or size 0, records are
   dropped. */
typedef void (*MUpti_BuffersCallbackRequestFunc)(uint8_t** buffer, size_t* size, size_t* maxNumRecords);
/* Returns a buffer with validSize bytes of records to the caller. */
typedef void (*MUpti_BuffersCallbackCompleteFunc)(
    MUcontext context, uint32_t streamId, uint8_t* buffer, size_t size, size_t validSize);

MUSA_EXTERN_C_BEGIN
MUSA_PUBLIC MUptiResult
muptiActivityRegisterCallbacks(MUpti_BuffersCallbackRequestFunc request, MUpti_BuffersCallbackCompleteFunc complete);
/* Returns MUPTI_ERROR_INVALID_KIND for a kind that has no records. */
MUSA_PUBLIC MUptiResult muptiActivityEnable(MUpti_ActivityKind kind);
MUSA_PUBLIC MUptiResult muptiActivityDisable(MUpti_ActivityKind kind);
/* Delivers all records of finished work, in full and in partially filled buffers. Returns
   MUPTI_ERROR_INVALID_OPERATION before muptiActivityRegisterCallbacks, and inside its callbacks. */
MUSA_PUBLIC MUptiResult muptiActivityFlushAll(uint32_t flag);
/* Advances *record to the next record, or to the first if *record is null. Returns MUPTI_ERROR_MAX_LIMIT_REACHED at
   the end. */
MUSA_PUBLIC MUptiResult muptiActivityGetNextRecord(uint8_t* buffer, size_t validSize, MUpti_Activity** record);
/* Number of records dropped since the last call because no buffer was available. */
MUSA_PUBLIC MUptiResult muptiActivityGetNumDroppedRecords(MUcontext context, uint32_t streamId, size_t* dropped);
MUSA_PUBLIC MUptiResult muptiActivityPushExternalCorrelationId(MUpti_ExternalCorrelationKind kind, uint64_t id);
/* Returns MUPTI_ERROR_QUEUE_EMPTY if the kind's stack of this thread is empty. lastId may be null. */
MUSA_PUBLIC MUptiResult muptiActivityPopExternalCorrelationId(MUpti_ExternalCorrelationKind kind, uint64_t* lastId);
MUSA_PUBLIC MUptiResult muptiActivitySetAttribute(MUpti_ActivityAttribute attribute, size_t* valueSize, void* value);
/* A null context means the current device. */
MUSA_PUBLIC MUptiResult muptiGetDeviceId(MUcontext context, uint32_t* deviceId);
/* Stops all collection and discards records that were not flushed. */
MUSA_PUBLIC MUptiResult muptiFinalize(void);
MUSA_EXTERN_C_END

#endif
