// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// libmufft over cuFFT, function by function.
#include <cufft.h>
#include <cufftXt.h>
#include <mufft.h>
#include <mufftXt.h>

#include "support/forward.h"
#include "support/hooks.h"

static_assert(
    (int)MUFFT_NOT_SUPPORTED == (int)CUFFT_NOT_SUPPORTED && (int)MUFFT_ALLOC_FAILED == (int)CUFFT_ALLOC_FAILED);
static_assert(MUFFT_FORWARD == CUFFT_FORWARD && MUFFT_INVERSE == CUFFT_INVERSE);
static_assert((int)MUFFT_R2C == (int)CUFFT_R2C && (int)MUFFT_Z2Z == (int)CUFFT_Z2Z);
static_assert((int)MUSA_R_32F == (int)CUDA_R_32F && (int)MUSA_R_64F == (int)CUDA_R_64F);
static_assert((int)MUSA_C_32F == (int)CUDA_C_32F && (int)MUSA_C_64F == (int)CUDA_C_64F);
static_assert((int)MUSA_R_16F == (int)CUDA_R_16F && (int)MUSA_C_16F == (int)CUDA_C_16F);

#include "mufft_forwarders.inc"
