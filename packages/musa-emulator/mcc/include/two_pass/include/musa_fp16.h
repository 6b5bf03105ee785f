// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The emulator's header defines its functions for the host; MUSA's can be called from host and device.
#pragma once
#pragma clang force_cuda_host_device begin
#include_next <musa_fp16.h>
#pragma clang force_cuda_host_device end

__device__ __half atomicAdd(__half*, __half);
__device__ __half2 atomicAdd(__half2*, __half2);
