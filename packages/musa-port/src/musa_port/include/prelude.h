// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Included first in each .mu source that uses torch's headers.
#pragma once

#include <ATen/musa/Exceptions.h>
#include <c10/macros/Macros.h>
#include <c10/util/Half.h>
#include <musa_bf16.h>
#include <musa_fp16.h>

// torch before 2.13 ignores AT_DISABLE_JITERATOR. If AT_USE_JITERATOR() is true, it omits functions that kernels
// call.
#if !defined(TORCH_STABLE_ONLY) && !defined(TORCH_TARGET_VERSION)
#include <ATen/jit_macros.h>
#if defined(AT_DISABLE_JITERATOR) && AT_USE_JITERATOR()
#undef AT_USE_JITERATOR
#define AT_USE_JITERATOR() false
#endif
#endif

// A built-in of nvcc that tests whether the host may call a lambda. mcc lacks it; its kernel lambdas are __host__
// __device__.
#define __nv_is_extended_host_device_lambda_closure_type(T) true
