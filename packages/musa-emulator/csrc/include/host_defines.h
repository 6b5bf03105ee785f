// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Storage and function qualifiers for translation units compiled by a host compiler. A device compiler defines the
// qualifiers before it includes this file, hence the #ifndef guards.
#ifndef MUSA_HOST_DEFINES_H
#define MUSA_HOST_DEFINES_H
#define __HOST_DEFINES_H__ // checked by programs

#ifndef __host__
#define __host__
#endif
#ifndef __device__
#define __device__
#endif
#ifndef __global__
#define __global__
#endif
#ifndef __launch_bounds__
#define __launch_bounds__(...)
#endif
#ifndef __forceinline__
#define __forceinline__ __inline__ __attribute__((always_inline))
#endif
#ifndef __align__
#define __align__(n) __attribute__((aligned(n)))
#endif

// The libraries are built with hidden visibility, so each public function is exported explicitly.
#define MUSA_PUBLIC __attribute__((visibility("default")))
#define MUSARTAPI
#define MUSART_CB // calling convention of callbacks; empty except on Windows

#ifdef __cplusplus
#define MUSA_DEFAULT_ARGUMENT(value) = value
#define MUSA_EXTERN_C_BEGIN extern "C" {
#define MUSA_EXTERN_C_END }
#else
#define MUSA_DEFAULT_ARGUMENT(value)
#define MUSA_EXTERN_C_BEGIN
#define MUSA_EXTERN_C_END
#endif

#endif
