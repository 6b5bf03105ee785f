// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Included first in each file that mcc gives to nvcc: MUSA's names for what the compiler defines.
#pragma once

// Architectures of MUSA are ordered: this is the newest that the SDK's headers know.
#ifdef __CUDA_ARCH__
#define __MUSA_ARCH__ 310
#endif

// As torch's own build of kernels: its operators of half types, not CUDA's.
#ifndef __CUDA_NO_HALF_OPERATORS__
#define __CUDA_NO_HALF_OPERATORS__
#define __CUDA_NO_HALF_CONVERSIONS__
#define __CUDA_NO_HALF2_OPERATORS__
#define __CUDA_NO_BFLOAT16_CONVERSIONS__
#endif

#include <cuda_runtime.h>
#include <musa_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
