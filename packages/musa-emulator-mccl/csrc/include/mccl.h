/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) torch_musa contributors
 *
 * MCCL: collectives between MUSA devices, of one process or of many. Every call takes a stream and returns at once;
 * ranks call in the same order. */
#ifndef MCCL_H
#define MCCL_H

#include <limits.h>
#include <stddef.h>

#include "musa_runtime_api.h"

#define MCCL_MAJOR 2
#define MCCL_MINOR 11
#define MCCL_PATCH 4
#define MCCL_SUFFIX ""
#define MCCL_VERSION(X, Y, Z) ((X) * 10000 + (Y) * 100 + (Z))
#define MCCL_VERSION_CODE MCCL_VERSION(MCCL_MAJOR, MCCL_MINOR, MCCL_PATCH)

#define MCCL_UNIQUE_ID_BYTES 128

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mcclComm* mcclComm_t;

typedef struct {
  char internal[MCCL_UNIQUE_ID_BYTES];
} mcclUniqueId;

typedef enum {
  mcclSuccess = 0,
  mcclUnhandledMusaError = 1,
  mcclSystemError = 2,
  mcclInternalError = 3,
  mcclInvalidArgument = 4,
  mcclInvalidUsage = 5,
  mcclRemoteError = 6,
} mcclResult_t;

typedef enum {
  mcclInt8 = 0,
  mcclChar = 0,
  mcclUint8 = 1,
  mcclInt32 = 2,
  mcclInt = 2,
  mcclUint32 = 3,
  mcclInt64 = 4,
  mcclUint64 = 5,
  mcclFloat16 = 6,
  mcclHalf = 6,
  mcclFloat32 = 7,
  mcclFloat = 7,
  mcclFloat64 = 8,
  mcclDouble = 8,
  mcclBfloat16 = 9,
  mcclFp8E4M3 = 10,
  mcclFp8E5M2 = 11,
} mcclDataType_t;

/* Values from 5 on are operations created with mcclRedOpCreatePreMulSum. */
typedef enum {
  mcclSum = 0,
  mcclProd = 1,
  mcclMax = 2,
  mcclMin = 3,
  mcclAvg = 4,
  mcclMaxRedOp = INT_MAX,
} mcclRedOp_t;

typedef enum {
  mcclScalarDevice = 0,        /* in device memory, read when the collective runs */
  mcclScalarHostImmediate = 1, /* in host memory, read before the call returns */
} mcclScalarResidence_t;

/* 10000 * major + 100 * minor + patch. */
mcclResult_t mcclGetVersion(int* version);
/* Called by one rank, which sends the bytes to the others by other means. */
mcclResult_t mcclGetUniqueId(mcclUniqueId* id);
const char* mcclGetErrorString(mcclResult_t result);

/* Blocks until all ranks have called. The communicator belongs to the caller's current device. */
mcclResult_t mcclCommInitRank(mcclComm_t* comm, int nranks, mcclUniqueId id, int rank);
/* One communicator per device, all in this process; devs may be null for 0, 1, ... */
mcclResult_t mcclCommInitAll(mcclComm_t* comms, int ndev, const int* devs);
/* Waits for the communicator's pending operations. */
mcclResult_t mcclCommDestroy(mcclComm_t comm);
/* Aborts the communicator's pending operations; their results are undefined. */
mcclResult_t mcclCommAbort(mcclComm_t comm);
/* The error that stopped the communicator: its operations then hang until mcclCommAbort. */
mcclResult_t mcclCommGetAsyncError(mcclComm_t comm, mcclResult_t* error);
mcclResult_t mcclCommCount(const mcclComm_t comm, int* count);
mcclResult_t mcclCommMuDevice(const mcclComm_t comm, int* device);
mcclResult_t mcclCommUserRank(const mcclComm_t comm, int* rank);

/* Creates a sum of values that are first multiplied by *scalar. */
mcclResult_t mcclRedOpCreatePreMulSum(
    mcclRedOp_t* op, void* scalar, mcclDataType_t datatype, mcclScalarResidence_t residence, mcclComm_t comm);
mcclResult_t mcclRedOpDestroy(mcclRedOp_t op, mcclComm_t comm);

/* Counts are elements. sendbuff may equal recvbuff, or this rank's part of it for AllGather and ReduceScatter. */
mcclResult_t mcclAllReduce(
    const void* sendbuff, void* recvbuff, size_t count, mcclDataType_t datatype, mcclRedOp_t op, mcclComm_t comm,
    musaStream_t stream);
mcclResult_t mcclReduce(
    const void* sendbuff, void* recvbuff, size_t count, mcclDataType_t datatype, mcclRedOp_t op, int root,
    mcclComm_t comm, musaStream_t stream);
mcclResult_t mcclBroadcast(
    const void* sendbuff, void* recvbuff, size_t count, mcclDataType_t datatype, int root, mcclComm_t comm,
    musaStream_t stream);
mcclResult_t mcclBcast(
    void* buff, size_t count, mcclDataType_t datatype, int root, mcclComm_t comm, musaStream_t stream);
/* recvbuff holds nranks * sendcount elements. */
mcclResult_t mcclAllGather(
    const void* sendbuff, void* recvbuff, size_t sendcount, mcclDataType_t datatype, mcclComm_t comm,
    musaStream_t stream);
/* sendbuff holds nranks * recvcount elements. */
mcclResult_t mcclReduceScatter(
    const void* sendbuff, void* recvbuff, size_t recvcount, mcclDataType_t datatype, mcclRedOp_t op, mcclComm_t comm,
    musaStream_t stream);
mcclResult_t mcclSend(
    const void* sendbuff, size_t count, mcclDataType_t datatype, int peer, mcclComm_t comm, musaStream_t stream);
mcclResult_t mcclRecv(
    void* recvbuff, size_t count, mcclDataType_t datatype, int peer, mcclComm_t comm, musaStream_t stream);

/* Calls between the two start together when the outermost group ends: calls that depend on each other, and calls for
 * several devices from one thread. */
mcclResult_t mcclGroupStart(void);
mcclResult_t mcclGroupEnd(void);

#ifdef __cplusplus
}
#endif

#endif
