// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The emulator's header defines its functions for the host; MUSA's can be called from host and device.
#pragma once
#pragma clang force_cuda_host_device begin
#include_next <musa_bf16.h>
#pragma clang force_cuda_host_device end

__device__ __mt_bfloat16 atomicAdd(__mt_bfloat16*, __mt_bfloat16);
__device__ __mt_bfloat162 atomicAdd(__mt_bfloat162*, __mt_bfloat162);
