// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Qualifiers and vector types are CUDA's; the rest of the SDK's host_defines.h.
#ifndef MUSA_HOST_DEFINES_H
#define MUSA_HOST_DEFINES_H
#include <cuda_runtime_api.h>
#include <vector_functions.h>
#include <vector_types.h>
#define MUSA_PUBLIC __attribute__((visibility("default")))
#define MUSARTAPI
#define MUSART_CB
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
