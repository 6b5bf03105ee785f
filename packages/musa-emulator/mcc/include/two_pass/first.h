// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Included first by `mcc --two-pass`, in both passes. Makes clang's CUDA mode accept MUSA: defines MUSA's qualifiers
// and macros, and declares only the device functions that MUSA is known to have. No code is generated, so most
// functions have no definition.
#pragma once

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__

#define __MUSACC__ 1
#define __MUSA__ 1
#ifdef __CUDA_ARCH__
#define __MUSA_ARCH__ MCC_TWO_PASS_ARCH
#endif
#undef __CUDA_ARCH__

// These functions of the C library exist in both passes. The library declares them for the host only, and clang
// rejects a host overload of a __host__ __device__ function, so the library's declarations are renamed while its
// headers are included.
extern "C" {
__host__ __device__ void* memcpy(void*, const void*, __SIZE_TYPE__) noexcept;
__host__ __device__ void* memset(void*, int, __SIZE_TYPE__) noexcept;
__host__ __device__ void* memmove(void*, const void*, __SIZE_TYPE__) noexcept;
// torch declares this function as __host__ __device__ in the device pass and for the host in the host pass.
#ifdef __MUSA_ARCH__
__host__
#endif
    __device__ void __assert_fail(const char*, const char*, unsigned, const char*) noexcept
    __attribute__((__noreturn__));
__host__ __device__ int __isinff(float);
__host__ __device__ int __isinf(double);
__host__ __device__ int __isnanf(float);
__host__ __device__ int __isnan(double);
__host__ __device__ int __finitef(float);
__host__ __device__ int __finite(double);
__host__ __device__ int __signbitf(float);
}
#define memcpy mcc_host_memcpy
#define memset mcc_host_memset
#define memmove mcc_host_memmove
#include <string.h>
#undef memcpy
#undef memset
#undef memmove

#ifdef __MUSA_ARCH__
#define __assert_fail mcc_host_assert_fail
#include <assert.h>
#undef __assert_fail
#endif

#define __isinff mcc_host_isinff
#define __isinf mcc_host_isinf
#define __isnanf mcc_host_isnanf
#define __isnan mcc_host_isnan
#define __finitef mcc_host_finitef
#define __finite mcc_host_finite
#define __signbitf mcc_host_signbitf
#define __signbit mcc_host_signbit
// The C library has internal functions with the names of these device functions.
#define __tanf mcc_host_tanf
#define __sinf mcc_host_sinf
#define __cosf mcc_host_cosf
#define __expf mcc_host_expf
#define __logf mcc_host_logf
#define __powf mcc_host_powf
#define __log2f mcc_host_log2f
#define __log10f mcc_host_log10f
#define __exp10f mcc_host_exp10f
#include <math.h>
#undef __isinff
#undef __isinf
#undef __isnanf
#undef __isnan
#undef __finitef
#undef __finite
#undef __signbitf
#undef __signbit
#undef __tanf
#undef __sinf
#undef __cosf
#undef __expf
#undef __logf
#undef __powf
#undef __log2f
#undef __log10f
#undef __exp10f

// Included before clang's device overloads for <cmath>, which the host's functions would hide otherwise.
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include <vector_types.h>
#include <vector_functions.h>

// clang's own declarations of built-in variables and device versions of C library functions. They require __CUDA__.
#define __CUDA__ 1
#define CUDA_VERSION 11050
#define CUDART_VERSION 11050
#include <__clang_cuda_builtin_vars.h>
#include <__clang_cuda_math_forward_declares.h>
#include <__clang_cuda_libdevice_declares.h>
#include "known_device_functions.h"
#include <__clang_cuda_math.h>
#include <__clang_cuda_cmath.h>
#include <__clang_cuda_complex_builtins.h>
#undef CUDA_VERSION
#undef CUDART_VERSION
#undef __CUDA__

#include <musa_runtime.h>

// clang translates `kernel<<<...>>>` to calls of these functions.
extern "C" int cudaConfigureCall(dim3, dim3, size_t = 0, musaStream_t = nullptr);
extern "C" unsigned __cudaPushCallConfiguration(dim3, dim3, size_t = 0, musaStream_t = nullptr);
