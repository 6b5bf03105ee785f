// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// What torch's macros would say of a device compiler of MUSA. Included first in each kernel.
#pragma once

#include <c10/macros/Macros.h>
#include <c10/util/Half.h>
#include <musa_bf16.h>
#include <musa_fp16.h>

#define C10_LAUNCH_BOUNDS_0 __launch_bounds__(256, 4)
#define C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)
// A lambda that the host may call too: to mcc each is.
#define __nv_is_extended_host_device_lambda_closure_type(T) true
#define AT_MUSA_CHECK(expression) C10_MUSA_CHECK(expression)

// torch converts to the device's type under CUDA's compiler alone.
inline __device__ c10::Half atomicAdd(__half* place, c10::Half value) {
  const __half before = atomicAdd(place, reinterpret_cast<const __half&>(value));
  return reinterpret_cast<const c10::Half&>(before);
}
