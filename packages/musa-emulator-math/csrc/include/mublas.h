// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Linear algebra on the device (libmublas). Functions enqueue on the handle's stream and return. Scalars (alpha, beta, results)
// are in host memory, where a result makes the call wait, or in device memory, as mublasSetPointerMode says.
#ifndef MUSA_MUBLAS_H
#define MUSA_MUBLAS_H
#define MUBLAS_H__ // programs test it

#include "library_types.h"
#include "muComplex.h"
#include "musa_fp16.h"
#include "musa_runtime.h"

#define MUBLAS_VERSION 10401

typedef struct mublasContext* mublasHandle_t;

typedef enum mublasStatus_t {
  MUBLAS_STATUS_SUCCESS = 0,
  MUBLAS_STATUS_INVALID_HANDLE = 1,
  MUBLAS_STATUS_NOT_IMPLEMENTED = 2,
  MUBLAS_STATUS_INVALID_POINTER = 3,
  MUBLAS_STATUS_INVALID_SIZE = 4,
  MUBLAS_STATUS_MEMORY_ERROR = 5,
  MUBLAS_STATUS_INTERNAL_ERROR = 6,
  MUBLAS_STATUS_PERF_DEGRADED = 7,
  MUBLAS_STATUS_SIZE_QUERY_MISMATCH = 8,
  MUBLAS_STATUS_SIZE_INCREASED = 9,
  MUBLAS_STATUS_SIZE_UNCHANGED = 10,
  MUBLAS_STATUS_INVALID_VALUE = 11,
  MUBLAS_STATUS_CONTINUE = 12,
  MUBLAS_STATUS_CHECK_NUMERICS_FAIL = 13
} mublasStatus_t;
typedef mublasStatus_t mublasStatus;

typedef enum mublasOperation_t { MUBLAS_OP_N = 111, MUBLAS_OP_T = 112, MUBLAS_OP_C = 113 } mublasOperation_t;
typedef mublasOperation_t mublasOperation;
typedef enum mublasFillMode_t { MUBLAS_FILL_MODE_UPPER = 121, MUBLAS_FILL_MODE_LOWER = 122 } mublasFillMode_t;
typedef enum mublasDiagType_t { MUBLAS_DIAG_NON_UNIT = 131, MUBLAS_DIAG_UNIT = 132 } mublasDiagType_t;
typedef enum mublasSideMode_t { MUBLAS_SIDE_LEFT = 141, MUBLAS_SIDE_RIGHT = 142 } mublasSideMode_t;
typedef enum mublasPointerMode_t { MUBLAS_POINTER_MODE_HOST = 0, MUBLAS_POINTER_MODE_DEVICE = 1 } mublasPointerMode_t;
typedef enum mublasAtomicsMode_t { MUBLAS_ATOMICS_NOT_ALLOWED = 0, MUBLAS_ATOMICS_ALLOWED = 1 } mublasAtomicsMode_t;
// Accepted and kept: the processor computes in the type that it is asked for.
typedef enum mublasMath_t {
  MUBLAS_DEFAULT_MATH = 0,
  MUBLAS_TENSOR_OP_MATH = 1,
  MUBLAS_MATH_MODE_DEFAULT = MUBLAS_DEFAULT_MATH,
  MUBLAS_MATH_MODE_TP32_TENSOR = MUBLAS_TENSOR_OP_MATH
} mublasMath_t;
typedef enum mublasGemmAlgo_t { MUBLAS_GEMM_DEFAULT = 0, MUBLAS_GEMM_DEFAULT_TENSOR_OP = 1 } mublasGemmAlgo_t;
typedef enum mublasComputeType_t {
  MUBLAS_COMPUTE_16F = 64,
  MUBLAS_COMPUTE_32F = 68,
  MUBLAS_COMPUTE_32F_FAST_16F = 74,
  MUBLAS_COMPUTE_32F_FAST_TF32 = 77,
  MUBLAS_COMPUTE_64F = 70,
  MUBLAS_COMPUTE_32I = 72
} mublasComputeType_t;

MUSA_EXTERN_C_BEGIN

MUSA_PUBLIC mublasStatus_t mublasCreate(mublasHandle_t* handle);
MUSA_PUBLIC mublasStatus_t mublasDestroy(mublasHandle_t handle);
MUSA_PUBLIC mublasStatus_t mublasGetVersion(mublasHandle_t handle, int* version);
MUSA_PUBLIC mublasStatus_t mublasSetStream(mublasHandle_t handle, musaStream_t stream);
MUSA_PUBLIC mublasStatus_t mublasGetStream(mublasHandle_t handle, musaStream_t* stream);
MUSA_PUBLIC mublasStatus_t mublasSetPointerMode(mublasHandle_t handle, mublasPointerMode_t mode);
MUSA_PUBLIC mublasStatus_t mublasGetPointerMode(mublasHandle_t handle, mublasPointerMode_t* mode);
MUSA_PUBLIC mublasStatus_t mublasSetMathMode(mublasHandle_t handle, mublasMath_t mode);
MUSA_PUBLIC mublasStatus_t mublasGetMathMode(mublasHandle_t handle, mublasMath_t* mode);
MUSA_PUBLIC mublasStatus_t mublasSetAtomicsMode(mublasHandle_t handle, mublasAtomicsMode_t mode);
MUSA_PUBLIC mublasStatus_t mublasGetAtomicsMode(mublasHandle_t handle, mublasAtomicsMode_t* mode);
MUSA_PUBLIC mublasStatus_t mublasSetWorkspace(mublasHandle_t handle, void* workspace, size_t bytes);
// The name of the enumerator.
MUSA_PUBLIC const char* mublasGetStatusString(mublasStatus_t status);
MUSA_PUBLIC const char* mublasStatus_to_string(mublasStatus_t status);

// ---- vectors: n elements, `inc` apart --------------------------------------------------------------------------------

MUSA_PUBLIC mublasStatus_t mublasSaxpy(
    mublasHandle_t handle, int n, const float* alpha, const float* x, int incx, float* y, int incy);
MUSA_PUBLIC mublasStatus_t mublasSscal(mublasHandle_t handle, int n, const float* alpha, float* x, int incx);
MUSA_PUBLIC mublasStatus_t mublasScopy(mublasHandle_t handle, int n, const float* x, int incx, float* y, int incy);
MUSA_PUBLIC mublasStatus_t mublasSswap(mublasHandle_t handle, int n, float* x, int incx, float* y, int incy);
MUSA_PUBLIC mublasStatus_t mublasSdot(
    mublasHandle_t handle, int n, const float* x, int incx, const float* y, int incy, float* result);
MUSA_PUBLIC mublasStatus_t mublasSnrm2(mublasHandle_t handle, int n, const float* x, int incx, float* result);
MUSA_PUBLIC mublasStatus_t mublasSasum(mublasHandle_t handle, int n, const float* x, int incx, float* result);
// Counts from 1; 0 for no elements.
MUSA_PUBLIC mublasStatus_t mublasIsamax(mublasHandle_t handle, int n, const float* x, int incx, int* result);
MUSA_PUBLIC mublasStatus_t mublasIsamin(mublasHandle_t handle, int n, const float* x, int incx, int* result);
MUSA_PUBLIC mublasStatus_t mublasDaxpy(
    mublasHandle_t handle, int n, const double* alpha, const double* x, int incx, double* y, int incy);
MUSA_PUBLIC mublasStatus_t mublasDscal(mublasHandle_t handle, int n, const double* alpha, double* x, int incx);
MUSA_PUBLIC mublasStatus_t mublasDcopy(mublasHandle_t handle, int n, const double* x, int incx, double* y, int incy);
MUSA_PUBLIC mublasStatus_t mublasDswap(mublasHandle_t handle, int n, double* x, int incx, double* y, int incy);
MUSA_PUBLIC mublasStatus_t mublasDdot(
    mublasHandle_t handle, int n, const double* x, int incx, const double* y, int incy, double* result);
MUSA_PUBLIC mublasStatus_t mublasDnrm2(mublasHandle_t handle, int n, const double* x, int incx, double* result);
MUSA_PUBLIC mublasStatus_t mublasDasum(mublasHandle_t handle, int n, const double* x, int incx, double* result);
MUSA_PUBLIC mublasStatus_t mublasIdamax(mublasHandle_t handle, int n, const double* x, int incx, int* result);
MUSA_PUBLIC mublasStatus_t mublasIdamin(mublasHandle_t handle, int n, const double* x, int incx, int* result);
MUSA_PUBLIC mublasStatus_t mublasCaxpy(
    mublasHandle_t handle, int n, const muComplex* alpha, const muComplex* x, int incx, muComplex* y, int incy);
MUSA_PUBLIC mublasStatus_t mublasCscal(mublasHandle_t handle, int n, const muComplex* alpha, muComplex* x, int incx);
MUSA_PUBLIC mublasStatus_t mublasCcopy(
    mublasHandle_t handle, int n, const muComplex* x, int incx, muComplex* y, int incy);
MUSA_PUBLIC mublasStatus_t mublasCswap(mublasHandle_t handle, int n, muComplex* x, int incx, muComplex* y, int incy);
MUSA_PUBLIC mublasStatus_t mublasCdotu(
    mublasHandle_t handle, int n, const muComplex* x, int incx, const muComplex* y, int incy, muComplex* result);
MUSA_PUBLIC mublasStatus_t mublasCdotc(
    mublasHandle_t handle, int n, const muComplex* x, int incx, const muComplex* y, int incy, muComplex* result);
MUSA_PUBLIC mublasStatus_t mublasScnrm2(mublasHandle_t handle, int n, const muComplex* x, int incx, float* result);
MUSA_PUBLIC mublasStatus_t mublasScasum(mublasHandle_t handle, int n, const muComplex* x, int incx, float* result);
MUSA_PUBLIC mublasStatus_t mublasIcamax(mublasHandle_t handle, int n, const muComplex* x, int incx, int* result);
MUSA_PUBLIC mublasStatus_t mublasIcamin(mublasHandle_t handle, int n, const muComplex* x, int incx, int* result);
MUSA_PUBLIC mublasStatus_t mublasCsscal(mublasHandle_t handle, int n, const float* alpha, muComplex* x, int incx);
MUSA_PUBLIC mublasStatus_t mublasZaxpy(
    mublasHandle_t handle, int n, const muDoubleComplex* alpha, const muDoubleComplex* x, int incx,
    muDoubleComplex* y, int incy);
MUSA_PUBLIC mublasStatus_t mublasZscal(
    mublasHandle_t handle, int n, const muDoubleComplex* alpha, muDoubleComplex* x, int incx);
MUSA_PUBLIC mublasStatus_t mublasZcopy(
    mublasHandle_t handle, int n, const muDoubleComplex* x, int incx, muDoubleComplex* y, int incy);
MUSA_PUBLIC mublasStatus_t mublasZswap(
    mublasHandle_t handle, int n, muDoubleComplex* x, int incx, muDoubleComplex* y, int incy);
MUSA_PUBLIC mublasStatus_t mublasZdotu(
    mublasHandle_t handle, int n, const muDoubleComplex* x, int incx, const muDoubleComplex* y, int incy,
    muDoubleComplex* result);
MUSA_PUBLIC mublasStatus_t mublasZdotc(
    mublasHandle_t handle, int n, const muDoubleComplex* x, int incx, const muDoubleComplex* y, int incy,
    muDoubleComplex* result);
MUSA_PUBLIC mublasStatus_t mublasDznrm2(
    mublasHandle_t handle, int n, const muDoubleComplex* x, int incx, double* result);
MUSA_PUBLIC mublasStatus_t mublasDzasum(
    mublasHandle_t handle, int n, const muDoubleComplex* x, int incx, double* result);
MUSA_PUBLIC mublasStatus_t mublasIzamax(
    mublasHandle_t handle, int n, const muDoubleComplex* x, int incx, int* result);
MUSA_PUBLIC mublasStatus_t mublasIzamin(
    mublasHandle_t handle, int n, const muDoubleComplex* x, int incx, int* result);
MUSA_PUBLIC mublasStatus_t mublasZdscal(
    mublasHandle_t handle, int n, const double* alpha, muDoubleComplex* x, int incx);

// ---- matrices and vectors. Matrices are column-major: element (i, j) is at a[i + j * lda] ----------------------------

MUSA_PUBLIC mublasStatus_t mublasSgemv(
    mublasHandle_t handle, mublasOperation_t trans, int m, int n, const float* alpha, const float* a, int lda,
    const float* x, int incx, const float* beta, float* y, int incy);
MUSA_PUBLIC mublasStatus_t mublasSger(
    mublasHandle_t handle, int m, int n, const float* alpha, const float* x, int incx, const float* y, int incy,
    float* a, int lda);
MUSA_PUBLIC mublasStatus_t mublasDgemv(
    mublasHandle_t handle, mublasOperation_t trans, int m, int n, const double* alpha, const double* a, int lda,
    const double* x, int incx, const double* beta, double* y, int incy);
MUSA_PUBLIC mublasStatus_t mublasDger(
    mublasHandle_t handle, int m, int n, const double* alpha, const double* x, int incx, const double* y, int incy,
    double* a, int lda);
MUSA_PUBLIC mublasStatus_t mublasCgemv(
    mublasHandle_t handle, mublasOperation_t trans, int m, int n, const muComplex* alpha, const muComplex* a,
    int lda, const muComplex* x, int incx, const muComplex* beta, muComplex* y, int incy);
MUSA_PUBLIC mublasStatus_t mublasCgeru(
    mublasHandle_t handle, int m, int n, const muComplex* alpha, const muComplex* x, int incx, const muComplex* y,
    int incy, muComplex* a, int lda);
MUSA_PUBLIC mublasStatus_t mublasCgerc(
    mublasHandle_t handle, int m, int n, const muComplex* alpha, const muComplex* x, int incx, const muComplex* y,
    int incy, muComplex* a, int lda);
MUSA_PUBLIC mublasStatus_t mublasZgemv(
    mublasHandle_t handle, mublasOperation_t trans, int m, int n, const muDoubleComplex* alpha,
    const muDoubleComplex* a, int lda, const muDoubleComplex* x, int incx, const muDoubleComplex* beta,
    muDoubleComplex* y, int incy);
MUSA_PUBLIC mublasStatus_t mublasZgeru(
    mublasHandle_t handle, int m, int n, const muDoubleComplex* alpha, const muDoubleComplex* x, int incx,
    const muDoubleComplex* y, int incy, muDoubleComplex* a, int lda);
MUSA_PUBLIC mublasStatus_t mublasZgerc(
    mublasHandle_t handle, int m, int n, const muDoubleComplex* alpha, const muDoubleComplex* x, int incx,
    const muDoubleComplex* y, int incy, muDoubleComplex* a, int lda);

// ---- matrices --------------------------------------------------------------------------------------------------------

MUSA_PUBLIC mublasStatus_t mublasSgemm(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k,
    const float* alpha, const float* a, int lda, const float* b, int ldb, const float* beta, float* c, int ldc);
MUSA_PUBLIC mublasStatus_t mublasSgemmStridedBatched(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k,
    const float* alpha, const float* a, int lda, long long stridea, const float* b, int ldb, long long strideb,
    const float* beta, float* c, int ldc, long long stridec, int batch);
MUSA_PUBLIC mublasStatus_t mublasSgemmBatched(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k,
    const float* alpha, const float* const a[], int lda, const float* const b[], int ldb, const float* beta,
    float* const c[], int ldc, int batch);
MUSA_PUBLIC mublasStatus_t mublasStrsm(
    mublasHandle_t handle, mublasSideMode_t side, mublasFillMode_t uplo, mublasOperation_t trans,
    mublasDiagType_t diag, int m, int n, const float* alpha, const float* a, int lda, float* b, int ldb);
MUSA_PUBLIC mublasStatus_t mublasStrsmBatched(
    mublasHandle_t handle, mublasSideMode_t side, mublasFillMode_t uplo, mublasOperation_t trans,
    mublasDiagType_t diag, int m, int n, const float* alpha, const float* const a[], int lda, float* const b[],
    int ldb, int batch);
MUSA_PUBLIC mublasStatus_t mublasSgeam(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, const float* alpha,
    const float* a, int lda, const float* beta, const float* b, int ldb, float* c, int ldc);
MUSA_PUBLIC mublasStatus_t mublasSdgmm(
    mublasHandle_t handle, mublasSideMode_t side, int m, int n, const float* a, int lda, const float* x, int incx,
    float* c, int ldc);
MUSA_PUBLIC mublasStatus_t mublasSsyrk(
    mublasHandle_t handle, mublasFillMode_t uplo, mublasOperation_t trans, int n, int k, const float* alpha,
    const float* a, int lda, const float* beta, float* c, int ldc);
MUSA_PUBLIC mublasStatus_t mublasDgemm(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k,
    const double* alpha, const double* a, int lda, const double* b, int ldb, const double* beta, double* c,
    int ldc);
MUSA_PUBLIC mublasStatus_t mublasDgemmStridedBatched(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k,
    const double* alpha, const double* a, int lda, long long stridea, const double* b, int ldb, long long strideb,
    const double* beta, double* c, int ldc, long long stridec, int batch);
MUSA_PUBLIC mublasStatus_t mublasDgemmBatched(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k,
    const double* alpha, const double* const a[], int lda, const double* const b[], int ldb, const double* beta,
    double* const c[], int ldc, int batch);
MUSA_PUBLIC mublasStatus_t mublasDtrsm(
    mublasHandle_t handle, mublasSideMode_t side, mublasFillMode_t uplo, mublasOperation_t trans,
    mublasDiagType_t diag, int m, int n, const double* alpha, const double* a, int lda, double* b, int ldb);
MUSA_PUBLIC mublasStatus_t mublasDtrsmBatched(
    mublasHandle_t handle, mublasSideMode_t side, mublasFillMode_t uplo, mublasOperation_t trans,
    mublasDiagType_t diag, int m, int n, const double* alpha, const double* const a[], int lda, double* const b[],
    int ldb, int batch);
MUSA_PUBLIC mublasStatus_t mublasDgeam(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, const double* alpha,
    const double* a, int lda, const double* beta, const double* b, int ldb, double* c, int ldc);
MUSA_PUBLIC mublasStatus_t mublasDdgmm(
    mublasHandle_t handle, mublasSideMode_t side, int m, int n, const double* a, int lda, const double* x, int incx,
    double* c, int ldc);
MUSA_PUBLIC mublasStatus_t mublasDsyrk(
    mublasHandle_t handle, mublasFillMode_t uplo, mublasOperation_t trans, int n, int k, const double* alpha,
    const double* a, int lda, const double* beta, double* c, int ldc);
MUSA_PUBLIC mublasStatus_t mublasCgemm(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k,
    const muComplex* alpha, const muComplex* a, int lda, const muComplex* b, int ldb, const muComplex* beta,
    muComplex* c, int ldc);
MUSA_PUBLIC mublasStatus_t mublasCgemmStridedBatched(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k,
    const muComplex* alpha, const muComplex* a, int lda, long long stridea, const muComplex* b, int ldb,
    long long strideb, const muComplex* beta, muComplex* c, int ldc, long long stridec, int batch);
MUSA_PUBLIC mublasStatus_t mublasCgemmBatched(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k,
    const muComplex* alpha, const muComplex* const a[], int lda, const muComplex* const b[], int ldb,
    const muComplex* beta, muComplex* const c[], int ldc, int batch);
MUSA_PUBLIC mublasStatus_t mublasCtrsm(
    mublasHandle_t handle, mublasSideMode_t side, mublasFillMode_t uplo, mublasOperation_t trans,
    mublasDiagType_t diag, int m, int n, const muComplex* alpha, const muComplex* a, int lda, muComplex* b,
    int ldb);
MUSA_PUBLIC mublasStatus_t mublasCtrsmBatched(
    mublasHandle_t handle, mublasSideMode_t side, mublasFillMode_t uplo, mublasOperation_t trans,
    mublasDiagType_t diag, int m, int n, const muComplex* alpha, muComplex* const a[], int lda,
    muComplex* const b[], int ldb, int batch);
MUSA_PUBLIC mublasStatus_t mublasCgeam(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, const muComplex* alpha,
    const muComplex* a, int lda, const muComplex* beta, const muComplex* b, int ldb, muComplex* c, int ldc);
MUSA_PUBLIC mublasStatus_t mublasCdgmm(
    mublasHandle_t handle, mublasSideMode_t side, int m, int n, const muComplex* a, int lda, const muComplex* x,
    int incx, muComplex* c, int ldc);
MUSA_PUBLIC mublasStatus_t mublasCsyrk(
    mublasHandle_t handle, mublasFillMode_t uplo, mublasOperation_t trans, int n, int k, const muComplex* alpha,
    const muComplex* a, int lda, const muComplex* beta, muComplex* c, int ldc);
MUSA_PUBLIC mublasStatus_t mublasZgemm(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k,
    const muDoubleComplex* alpha, const muDoubleComplex* a, int lda, const muDoubleComplex* b, int ldb,
    const muDoubleComplex* beta, muDoubleComplex* c, int ldc);
MUSA_PUBLIC mublasStatus_t mublasZgemmStridedBatched(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k,
    const muDoubleComplex* alpha, const muDoubleComplex* a, int lda, long long stridea, const muDoubleComplex* b,
    int ldb, long long strideb, const muDoubleComplex* beta, muDoubleComplex* c, int ldc, long long stridec,
    int batch);
MUSA_PUBLIC mublasStatus_t mublasZgemmBatched(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k,
    const muDoubleComplex* alpha, const muDoubleComplex* const a[], int lda, const muDoubleComplex* const b[],
    int ldb, const muDoubleComplex* beta, muDoubleComplex* const c[], int ldc, int batch);
MUSA_PUBLIC mublasStatus_t mublasZtrsm(
    mublasHandle_t handle, mublasSideMode_t side, mublasFillMode_t uplo, mublasOperation_t trans,
    mublasDiagType_t diag, int m, int n, const muDoubleComplex* alpha, const muDoubleComplex* a, int lda,
    muDoubleComplex* b, int ldb);
MUSA_PUBLIC mublasStatus_t mublasZtrsmBatched(
    mublasHandle_t handle, mublasSideMode_t side, mublasFillMode_t uplo, mublasOperation_t trans,
    mublasDiagType_t diag, int m, int n, const muDoubleComplex* alpha, muDoubleComplex* const a[], int lda,
    muDoubleComplex* const b[], int ldb, int batch);
MUSA_PUBLIC mublasStatus_t mublasZgeam(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n,
    const muDoubleComplex* alpha, const muDoubleComplex* a, int lda, const muDoubleComplex* beta,
    const muDoubleComplex* b, int ldb, muDoubleComplex* c, int ldc);
MUSA_PUBLIC mublasStatus_t mublasZdgmm(
    mublasHandle_t handle, mublasSideMode_t side, int m, int n, const muDoubleComplex* a, int lda,
    const muDoubleComplex* x, int incx, muDoubleComplex* c, int ldc);
MUSA_PUBLIC mublasStatus_t mublasZsyrk(
    mublasHandle_t handle, mublasFillMode_t uplo, mublasOperation_t trans, int n, int k,
    const muDoubleComplex* alpha, const muDoubleComplex* a, int lda, const muDoubleComplex* beta,
    muDoubleComplex* c, int ldc);
#ifdef __cplusplus
MUSA_PUBLIC mublasStatus_t mublasHgemm(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k,
    const __half* alpha, const __half* a, int lda, const __half* b, int ldb, const __half* beta, __half* c,
    int ldc);
MUSA_PUBLIC mublasStatus_t mublasHgemmStridedBatched(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k,
    const __half* alpha, const __half* a, int lda, long long stridea, const __half* b, int ldb, long long strideb,
    const __half* beta, __half* c, int ldc, long long stridec, int batch);
MUSA_PUBLIC mublasStatus_t mublasHgemmBatched(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k,
    const __half* alpha, const __half* const a[], int lda, const __half* const b[], int ldb, const __half* beta,
    __half* const c[], int ldc, int batch);
#endif

// ---- matrices of several types. alpha and beta are of the type of `compute` ------------------------------------------

MUSA_PUBLIC mublasStatus_t mublasGemmEx(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k,
    const void* alpha, const void* a, musaDataType atype, int lda, const void* b, musaDataType btype, int ldb,
    const void* beta, void* c, musaDataType ctype, int ldc, mublasComputeType_t compute, mublasGemmAlgo_t algo);
MUSA_PUBLIC mublasStatus_t mublasGemmStridedBatchedEx(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k,
    const void* alpha, const void* a, musaDataType atype, int lda, long long stridea, const void* b,
    musaDataType btype, int ldb, long long strideb, const void* beta, void* c, musaDataType ctype, int ldc,
    long long stridec, int batch, mublasComputeType_t compute, mublasGemmAlgo_t algo);
MUSA_PUBLIC mublasStatus_t mublasGemmBatchedEx(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k,
    const void* alpha, const void* const a[], musaDataType atype, int lda, const void* const b[],
    musaDataType btype, int ldb, const void* beta, void* const c[], musaDataType ctype, int ldc, int batch,
    mublasComputeType_t compute, mublasGemmAlgo_t algo);

MUSA_EXTERN_C_END

#ifdef __cplusplus
// SDK 3 took the type of the computation as a musaDataType, and programs still pass one.
static inline mublasComputeType_t mublas_compute_type(musaDataType type) {
  switch (type) {
    case MUSA_R_16F: return MUBLAS_COMPUTE_16F;
    case MUSA_R_64F:
    case MUSA_C_64F: return MUBLAS_COMPUTE_64F;
    case MUSA_R_32I: return MUBLAS_COMPUTE_32I;
    case MUSA_R_32F:
    case MUSA_C_32F: return MUBLAS_COMPUTE_32F;
    default: return static_cast<mublasComputeType_t>(0); // refused as an invalid value
  }
}
static inline mublasStatus_t mublasGemmEx(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k,
    const void* alpha, const void* a, musaDataType atype, int lda, const void* b, musaDataType btype, int ldb,
    const void* beta, void* c, musaDataType ctype, int ldc, musaDataType compute, mublasGemmAlgo_t algo) {
  return mublasGemmEx(handle, transa, transb, m, n, k, alpha, a, atype, lda, b, btype, ldb, beta, c, ctype,
      ldc, mublas_compute_type(compute), algo);
}
static inline mublasStatus_t mublasGemmStridedBatchedEx(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k,
    const void* alpha, const void* a, musaDataType atype, int lda, long long stridea, const void* b,
    musaDataType btype, int ldb, long long strideb, const void* beta, void* c, musaDataType ctype, int ldc,
    long long stridec, int batch, musaDataType compute, mublasGemmAlgo_t algo) {
  return mublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, a, atype, lda, stridea, b, btype,
      ldb, strideb, beta, c, ctype, ldc, stridec, batch, mublas_compute_type(compute), algo);
}
static inline mublasStatus_t mublasGemmBatchedEx(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k,
    const void* alpha, const void* const a[], musaDataType atype, int lda, const void* const b[],
    musaDataType btype, int ldb, const void* beta, void* const c[], musaDataType ctype, int ldc, int batch,
    musaDataType compute, mublasGemmAlgo_t algo) {
  return mublasGemmBatchedEx(handle, transa, transb, m, n, k, alpha, a, atype, lda, b, btype, ldb, beta, c,
      ctype, ldc, batch, mublas_compute_type(compute), algo);
}
#endif

#endif
