// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once
#include <cuda_bf16.h>
typedef __nv_bfloat16 __mt_bfloat16;
typedef __nv_bfloat162 __mt_bfloat162;
typedef __nv_bfloat16_raw __mt_bfloat16_raw;
typedef __nv_bfloat162_raw __mt_bfloat162_raw;
typedef __nv_bfloat16 mt_bfloat16;
typedef __nv_bfloat162 mt_bfloat162;
