// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// libmusart: an entry point for each function of the SDK's headers, and the checks of types that are written by hand. Each
// forwarder itself compares the sizes of the structures that its pointers point to.
#include "musart/support.h"

static_assert((int)musaErrorInvalidClusterSize == (int)cudaErrorInvalidClusterSize);
static_assert((int)musaErrorStreamCaptureWrongThread == (int)cudaErrorStreamCaptureWrongThread);
static_assert((int)musaErrorUnknown == (int)cudaErrorUnknown);
static_assert((int)musaDevAttrMemoryPoolsSupported == (int)cudaDevAttrMemoryPoolsSupported);
static_assert((int)musaDevAttrClusterLaunch == (int)cudaDevAttrClusterLaunch);
static_assert((int)musaMemcpyDefault == (int)cudaMemcpyDefault);
static_assert((int)musaMemoryTypeManaged == (int)cudaMemoryTypeManaged);
static_assert((int)musaLimitPersistingL2CacheSize == (int)cudaLimitPersistingL2CacheSize);
static_assert((int)musaStreamCaptureModeRelaxed == (int)cudaStreamCaptureModeRelaxed);
static_assert((int)musaGraphNodeTypeMemFree == (int)cudaGraphNodeTypeMemFree);
static_assert((int)musaMemPoolAttrUsedMemHigh == (int)cudaMemPoolAttrUsedMemHigh);
static_assert(
    (int)musaFuncAttributePreferredSharedMemoryCarveout == (int)cudaFuncAttributePreferredSharedMemoryCarveout);
static_assert((int)musaLaunchAttributePriority == (int)cudaLaunchAttributePriority);
static_assert(musaHostAllocWriteCombined == cudaHostAllocWriteCombined);
static_assert(musaEventInterprocess == cudaEventInterprocess);
static_assert(musaMemAttachSingle == cudaMemAttachSingle);

// Deprecated functions of the SDK are deprecated in CUDA too.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include "musart_forwarders.inc"
