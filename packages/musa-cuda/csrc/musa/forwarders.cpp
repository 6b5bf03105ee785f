// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// libmusa: an entry point for each function of the driver's header.
#include "musa/support.h"

static_assert(sizeof(MUmemAllocationProp) == sizeof(CUmemAllocationProp));
static_assert((int)MUSA_ERROR_INVALID_CLUSTER_SIZE == (int)CUDA_ERROR_INVALID_CLUSTER_SIZE);
static_assert((int)MUSA_ERROR_UNKNOWN == (int)CUDA_ERROR_UNKNOWN);
static_assert((int)MU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED == (int)CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
static_assert((int)MU_POINTER_ATTRIBUTE_RANGE_SIZE == (int)CU_POINTER_ATTRIBUTE_RANGE_SIZE);
static_assert(
    (int)MU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT == (int)CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
static_assert((int)MU_MEM_ACCESS_FLAGS_PROT_READWRITE == (int)CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
static_assert((int)MU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR == (int)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);

#include "musa_forwarders.inc"
