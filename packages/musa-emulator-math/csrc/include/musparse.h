// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Sparse linear algebra on the device (libmusparse): matrices in CSR or COO format with float, double and their
// complex types. Functions enqueue work on the handle's stream and return. alpha and beta have the compute type;
// musparseSetPointerMode selects host or device memory for them. Indices, values and dense operands are in device
// memory.
#ifndef MUSA_MUSPARSE_H
#define MUSA_MUSPARSE_H

#include <stdint.h>

#include "library_types.h"
#include "muComplex.h"
#include "musa_runtime.h"

#define MUSPARSE_VERSION 10401

typedef struct musparseContext* musparseHandle_t;
typedef struct musparseSpMatDescr* musparseSpMatDescr_t;
typedef struct musparseDnVecDescr* musparseDnVecDescr_t;
typedef struct musparseDnMatDescr* musparseDnMatDescr_t;

typedef enum musparseStatus_t {
  MUSPARSE_STATUS_SUCCESS = 0,
  MUSPARSE_STATUS_INVALID_HANDLE = 1,
  MUSPARSE_STATUS_NOT_IMPLEMENTED = 2,
  MUSPARSE_STATUS_INVALID_POINTER = 3,
  MUSPARSE_STATUS_INVALID_SIZE = 4,
  MUSPARSE_STATUS_MEMORY_ERROR = 5,
  MUSPARSE_STATUS_INTERNAL_ERROR = 6,
  MUSPARSE_STATUS_INVALID_VALUE = 7,
  MUSPARSE_STATUS_ARCH_MISMATCH = 8,
  MUSPARSE_STATUS_ZERO_PIVOT = 9,
  MUSPARSE_STATUS_NOT_INITIALIZED = 10
} musparseStatus_t;

typedef enum musparsePointerMode_t {
  MUSPARSE_POINTER_MODE_HOST = 0,
  MUSPARSE_POINTER_MODE_DEVICE = 1
} musparsePointerMode_t;
typedef enum musparseOperation_t {
  MUSPARSE_OPERATION_NON_TRANSPOSE = 111,
  MUSPARSE_OPERATION_TRANSPOSE = 112,
  MUSPARSE_OPERATION_CONJUGATE_TRANSPOSE = 113
} musparseOperation_t;
typedef enum musparseIndexType_t { MUSPARSE_INDEX_32I = 2, MUSPARSE_INDEX_64I = 3 } musparseIndexType_t;
typedef enum musparseIndexBase_t { MUSPARSE_INDEX_BASE_ZERO = 0, MUSPARSE_INDEX_BASE_ONE = 1 } musparseIndexBase_t;
typedef enum musparseOrder_t { MUSPARSE_ORDER_ROW = 0, MUSPARSE_ORDER_COLUMN = 1 } musparseOrder_t;
typedef enum musparseSpMVAlg_t { MUSPARSE_SPMV_ALG_DEFAULT = 0 } musparseSpMVAlg_t;
typedef enum musparseSpMMAlg_t { MUSPARSE_SPMM_ALG_DEFAULT = 0 } musparseSpMMAlg_t;
typedef enum musparseSpMMStage_t {
  MUSPARSE_SPMM_STAGE_AUTO = 0, // BUFFER_SIZE without a buffer, COMPUTE with one
  MUSPARSE_SPMM_STAGE_BUFFER_SIZE = 1,
  MUSPARSE_SPMM_STAGE_PREPROCESS = 2,
  MUSPARSE_SPMM_STAGE_COMPUTE = 3
} musparseSpMMStage_t;
typedef enum musparseSpGEMMAlg_t { MUSPARSE_SPGEMM_ALG_DEFAULT = 0 } musparseSpGEMMAlg_t;
typedef enum musparseSpGEMMStage_t {
  MUSPARSE_SPGEMM_STAGE_BUFFER_SIZE = 1,
  MUSPARSE_SPGEMM_STAGE_NNZ = 2,    // waits; writes c's row pointers, and its nnz into the descriptor
  MUSPARSE_SPGEMM_STAGE_COMPUTE = 3 // writes c's columns, ascending in each row, and its values
} musparseSpGEMMStage_t;

MUSA_EXTERN_C_BEGIN

MUSA_PUBLIC musparseStatus_t musparseCreate(musparseHandle_t* handle);
MUSA_PUBLIC musparseStatus_t musparseDestroy(musparseHandle_t handle);
MUSA_PUBLIC musparseStatus_t musparseGetVersion(musparseHandle_t handle, int* version);
MUSA_PUBLIC musparseStatus_t musparseSetStream(musparseHandle_t handle, musaStream_t stream);
MUSA_PUBLIC musparseStatus_t musparseSetPointerMode(musparseHandle_t handle, musparsePointerMode_t mode);

// ---- descriptors: sizes and addresses of operands. Enqueued work uses the values that a descriptor had at the call
// ---------

// `row_pointers` has rows + 1 elements, `columns` and `values` have nnz.
MUSA_PUBLIC musparseStatus_t musparseCreateCsr(
    musparseSpMatDescr_t* matrix, int64_t rows, int64_t cols, int64_t nnz, void* row_pointers, void* columns,
    void* values, musparseIndexType_t row_pointer_type, musparseIndexType_t column_type, musparseIndexBase_t base,
    musaDataType type);
// Entries may be in any order; duplicate entries are added.
MUSA_PUBLIC musparseStatus_t musparseCreateCoo(
    musparseSpMatDescr_t* matrix, int64_t rows, int64_t cols, int64_t nnz, void* row_indices, void* columns,
    void* values, musparseIndexType_t index_type, musparseIndexBase_t base, musaDataType type);
MUSA_PUBLIC musparseStatus_t musparseDestroySpMat(musparseSpMatDescr_t matrix);
MUSA_PUBLIC musparseStatus_t
musparseSpMatGetSize(musparseSpMatDescr_t matrix, int64_t* rows, int64_t* cols, int64_t* nnz);
MUSA_PUBLIC musparseStatus_t
musparseCsrSetPointers(musparseSpMatDescr_t matrix, void* row_pointers, void* columns, void* values);
MUSA_PUBLIC musparseStatus_t
musparseCreateDnVec(musparseDnVecDescr_t* vector, int64_t size, void* values, musaDataType type);
MUSA_PUBLIC musparseStatus_t musparseDestroyDnVec(musparseDnVecDescr_t vector);
// `ld` is the distance between rows in row-major order, and between columns in column-major order.
MUSA_PUBLIC musparseStatus_t musparseCreateDnMat(
    musparseDnMatDescr_t* matrix, int64_t rows, int64_t cols, int64_t ld, void* values, musaDataType type,
    musparseOrder_t order);
MUSA_PUBLIC musparseStatus_t musparseDestroyDnMat(musparseDnMatDescr_t matrix);

// ---- products. Buffers are not used and may be null, except with MUSPARSE_SPMM_STAGE_AUTO, where null requests the
// size ------

// y = alpha * op(a) * x + beta * y. y is not read if beta is 0.
MUSA_PUBLIC musparseStatus_t musparseSpMV_bufferSize(
    musparseHandle_t handle, musparseOperation_t operation, const void* alpha, musparseSpMatDescr_t a,
    musparseDnVecDescr_t x, const void* beta, musparseDnVecDescr_t y, musaDataType compute_type,
    musparseSpMVAlg_t algorithm, size_t* buffer_size);
MUSA_PUBLIC musparseStatus_t musparseSpMV(
    musparseHandle_t handle, musparseOperation_t operation, const void* alpha, musparseSpMatDescr_t a,
    musparseDnVecDescr_t x, const void* beta, musparseDnVecDescr_t y, musaDataType compute_type,
    musparseSpMVAlg_t algorithm, void* buffer);
// c = alpha * op(a) * op(b) + beta * c. c is not read if beta is 0.
MUSA_PUBLIC musparseStatus_t musparseSpMM(
    musparseHandle_t handle, musparseOperation_t operation_a, musparseOperation_t operation_b, const void* alpha,
    musparseSpMatDescr_t a, musparseDnMatDescr_t b, const void* beta, musparseDnMatDescr_t c, musaDataType compute_type,
    musparseSpMMAlg_t algorithm, musparseSpMMStage_t stage, size_t* buffer_size, void* buffer);
// c = alpha * a * b for CSR matrices with equal index types. Only beta = 0 is implemented, so d, which may equal c,
// is not read. Between the stages NNZ and COMPUTE the caller allocates columns and values of c and passes them to
// musparseCsrSetPointers.
MUSA_PUBLIC musparseStatus_t musparseSpGEMM(
    musparseHandle_t handle, musparseOperation_t operation_a, musparseOperation_t operation_b, const void* alpha,
    musparseSpMatDescr_t a, musparseSpMatDescr_t b, const void* beta, musparseSpMatDescr_t d, musparseSpMatDescr_t c,
    musaDataType compute_type, musparseSpGEMMAlg_t algorithm, musparseSpGEMMStage_t stage, size_t* buffer_size,
    void* buffer);

MUSA_EXTERN_C_END

#ifdef __cplusplus
// SDK 3 has one function for both steps: with a null buffer it only writes the size.
static inline musparseStatus_t musparseSpMV(
    musparseHandle_t handle, musparseOperation_t operation, const void* alpha, musparseSpMatDescr_t a,
    musparseDnVecDescr_t x, const void* beta, musparseDnVecDescr_t y, musaDataType compute_type,
    musparseSpMVAlg_t algorithm, size_t* buffer_size, void* buffer) {
  return buffer == nullptr
      ? musparseSpMV_bufferSize(handle, operation, alpha, a, x, beta, y, compute_type, algorithm, buffer_size)
      : musparseSpMV(handle, operation, alpha, a, x, beta, y, compute_type, algorithm, buffer);
}
#endif

#endif
