// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// libmccl over NCCL, function by function.
#include <cuda_runtime_api.h>
#include <mccl.h>
#include <nccl.h>

#include "support/forward.h"
#include "support/hooks.h"

static_assert((int)mcclRemoteError == (int)ncclRemoteError);
static_assert((int)mcclBfloat16 == (int)ncclBfloat16 && (int)mcclFp8E4M3 == (int)ncclFloat8e4m3);
static_assert((int)mcclFp8E5M2 == (int)ncclFloat8e5m2);
static_assert((int)mcclAvg == (int)ncclAvg && (int)mcclMaxRedOp == (int)ncclMaxRedOp);
static_assert((int)mcclScalarHostImmediate == (int)ncclScalarHostImmediate);

#include "mccl_forwarders.inc"
