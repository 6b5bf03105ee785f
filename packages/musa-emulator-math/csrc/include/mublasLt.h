// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Matrix products with an epilogue (libmublasLt): d = epilogue(alpha * op(a) * op(b) + beta * c). Matrices are
// column-major and in device memory; alpha and beta are in host memory and have the scale type. Sizes, types and
// options are in descriptors, which may be changed or destroyed after a call returns.
#ifndef MUSA_MUBLASLT_H
#define MUSA_MUBLASLT_H

#include <stddef.h>
#include <stdint.h>

#include "mublas.h"

typedef struct mublasLtContext* mublasLtHandle_t;
typedef struct mublasLtMatmulDescOpaque_t* mublasLtMatmulDesc_t;
typedef struct mublasLtMatrixLayoutOpaque_t* mublasLtMatrixLayout_t;
typedef struct mublasLtMatmulPreferenceOpaque_t* mublasLtMatmulPreference_t;

// Type of each attribute, with the default in parentheses.
typedef enum mublasLtMatmulDescAttributes_t {
  MUBLASLT_MATMUL_DESC_TRANSA = 3,      // mublasOperation_t (MUBLAS_OP_N)
  MUBLASLT_MATMUL_DESC_TRANSB = 4,      // mublasOperation_t (MUBLAS_OP_N)
  MUBLASLT_MATMUL_DESC_EPILOGUE = 7,    // mublasLtEpilogue_t (MUBLASLT_EPILOGUE_DEFAULT)
  MUBLASLT_MATMUL_DESC_BIAS_POINTER = 8 // const void* (null): one element of d's type per row of d
} mublasLtMatmulDescAttributes_t;
typedef enum mublasLtEpilogue_t {
  MUBLASLT_EPILOGUE_DEFAULT = 1, // none
  MUBLASLT_EPILOGUE_RELU = 2,
  MUBLASLT_EPILOGUE_BIAS = 4,
  MUBLASLT_EPILOGUE_RELU_BIAS = 6, // the bias is added first
  MUBLASLT_EPILOGUE_GELU = 32,     // tanh approximation
  MUBLASLT_EPILOGUE_GELU_BIAS = 36
} mublasLtEpilogue_t;
typedef enum mublasLtMatrixLayoutAttribute_t {
  MUBLASLT_MATRIX_LAYOUT_TYPE = 0,                // musaDataType
  MUBLASLT_MATRIX_LAYOUT_ROWS = 2,                // uint64_t
  MUBLASLT_MATRIX_LAYOUT_COLS = 3,                // uint64_t
  MUBLASLT_MATRIX_LAYOUT_LD = 4,                  // int64_t
  MUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,         // int32_t (1)
  MUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6 // int64_t (0), in elements; 0 reuses one matrix
} mublasLtMatrixLayoutAttribute_t;
typedef enum mublasLtMatmulPreferenceAttributes_t {
  MUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1 // size_t (0); accepted and without effect
} mublasLtMatmulPreferenceAttributes_t;

typedef struct mublasLtMatmulAlgo_t {
  uint64_t data[8];
} mublasLtMatmulAlgo_t;
typedef struct mublasLtMatmulHeuristicResult_t {
  mublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  mublasStatus_t state;
  float wavesCount;
  int reserved[4];
} mublasLtMatmulHeuristicResult_t;

MUSA_EXTERN_C_BEGIN

MUSA_PUBLIC mublasStatus_t mublasLtCreate(mublasLtHandle_t* handle);
MUSA_PUBLIC mublasStatus_t mublasLtDestroy(mublasLtHandle_t handle);

MUSA_PUBLIC mublasStatus_t
mublasLtMatmulDescCreate(mublasLtMatmulDesc_t* description, mublasComputeType_t compute, musaDataType scale_type);
MUSA_PUBLIC mublasStatus_t mublasLtMatmulDescDestroy(mublasLtMatmulDesc_t description);
MUSA_PUBLIC mublasStatus_t
mublasLtMatrixLayoutCreate(mublasLtMatrixLayout_t* layout, musaDataType type, uint64_t rows, uint64_t cols, int64_t ld);
MUSA_PUBLIC mublasStatus_t mublasLtMatrixLayoutDestroy(mublasLtMatrixLayout_t layout);
MUSA_PUBLIC mublasStatus_t mublasLtMatmulPreferenceCreate(mublasLtMatmulPreference_t* preference);
MUSA_PUBLIC mublasStatus_t mublasLtMatmulPreferenceDestroy(mublasLtMatmulPreference_t preference);

// Returns MUBLAS_STATUS_INVALID_VALUE if `bytes` is not the size of the attribute. `written`, which may be null, is
// set to that size.
MUSA_PUBLIC mublasStatus_t mublasLtMatmulDescSetAttribute(
    mublasLtMatmulDesc_t description, mublasLtMatmulDescAttributes_t attribute, const void* value, size_t bytes);
MUSA_PUBLIC mublasStatus_t mublasLtMatmulDescGetAttribute(
    mublasLtMatmulDesc_t description, mublasLtMatmulDescAttributes_t attribute, void* value, size_t bytes,
    size_t* written);
MUSA_PUBLIC mublasStatus_t mublasLtMatrixLayoutSetAttribute(
    mublasLtMatrixLayout_t layout, mublasLtMatrixLayoutAttribute_t attribute, const void* value, size_t bytes);
MUSA_PUBLIC mublasStatus_t mublasLtMatrixLayoutGetAttribute(
    mublasLtMatrixLayout_t layout, mublasLtMatrixLayoutAttribute_t attribute, void* value, size_t bytes,
    size_t* written);
MUSA_PUBLIC mublasStatus_t mublasLtMatmulPreferenceSetAttribute(
    mublasLtMatmulPreference_t preference, mublasLtMatmulPreferenceAttributes_t attribute, const void* value,
    size_t bytes);

// There is one algorithm, without a workspace. Writes it to results[0] and 1 to *returned. If mublasLtMatmul would
// reject the product, writes 0 and returns its status.
MUSA_PUBLIC mublasStatus_t mublasLtMatmulAlgoGetHeuristic(
    mublasLtHandle_t handle, mublasLtMatmulDesc_t description, mublasLtMatrixLayout_t a, mublasLtMatrixLayout_t b,
    mublasLtMatrixLayout_t c, mublasLtMatrixLayout_t d, mublasLtMatmulPreference_t preference, int requested,
    mublasLtMatmulHeuristicResult_t results[], int* returned);
// `algo` and `workspace` may be null. c may equal d. c is not read if beta is 0.
MUSA_PUBLIC mublasStatus_t mublasLtMatmul(
    mublasLtHandle_t handle, mublasLtMatmulDesc_t description, const void* alpha, const void* a,
    mublasLtMatrixLayout_t layout_a, const void* b, mublasLtMatrixLayout_t layout_b, const void* beta, const void* c,
    mublasLtMatrixLayout_t layout_c, void* d, mublasLtMatrixLayout_t layout_d, const mublasLtMatmulAlgo_t* algo,
    void* workspace, size_t workspace_bytes, musaStream_t stream);

MUSA_EXTERN_C_END

#endif
