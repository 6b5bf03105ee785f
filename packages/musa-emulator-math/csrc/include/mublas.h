// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Linear algebra on the device (libmublas). Functions enqueue work on the handle's stream and return.
// mublasSetPointerMode selects whether scalars (alpha, beta, results) are in host or device memory; a result in host
// memory makes the call wait.
#ifndef MUSA_MUBLAS_H
#define MUSA_MUBLAS_H
#define MUBLAS_H__ // checked by programs

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
// Accepted and stored without effect: computations use the requested type.
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
// Returns the name of the enumerator.
MUSA_PUBLIC const char* mublasGetStatusString(mublasStatus_t status);
MUSA_PUBLIC const char* mublasStatus_to_string(mublasStatus_t status);

// Functions with several types: S is float, D is double, C and Z are their complex types, H is __half.

// ---- vectors: n elements with increment `inc`
// -------------------------------------------------------------------------

// amax and amin return a 1-based index, or 0 if there are no elements.
#define MUBLAS_VECTOR_FUNCTIONS(L, T, NORM, INDEX, REAL) \
  MUSA_PUBLIC mublasStatus_t mublas##L##axpy( \
      mublasHandle_t handle, int n, const T* alpha, const T* x, int incx, T* y, int incy); \
  MUSA_PUBLIC mublasStatus_t mublas##L##scal(mublasHandle_t handle, int n, const T* alpha, T* x, int incx); \
  MUSA_PUBLIC mublasStatus_t mublas##L##copy(mublasHandle_t handle, int n, const T* x, int incx, T* y, int incy); \
  MUSA_PUBLIC mublasStatus_t mublas##L##swap(mublasHandle_t handle, int n, T* x, int incx, T* y, int incy); \
  MUSA_PUBLIC mublasStatus_t mublas##NORM##nrm2(mublasHandle_t handle, int n, const T* x, int incx, REAL* result); \
  MUSA_PUBLIC mublasStatus_t mublas##NORM##asum(mublasHandle_t handle, int n, const T* x, int incx, REAL* result); \
  MUSA_PUBLIC mublasStatus_t mublas##INDEX##amax(mublasHandle_t handle, int n, const T* x, int incx, int* result); \
  MUSA_PUBLIC mublasStatus_t mublas##INDEX##amin(mublasHandle_t handle, int n, const T* x, int incx, int* result);
MUBLAS_VECTOR_FUNCTIONS(S, float, S, Is, float)
MUBLAS_VECTOR_FUNCTIONS(D, double, D, Id, double)
MUBLAS_VECTOR_FUNCTIONS(C, muComplex, Sc, Ic, float)
MUBLAS_VECTOR_FUNCTIONS(Z, muDoubleComplex, Dz, Iz, double)
#undef MUBLAS_VECTOR_FUNCTIONS
// dotc conjugates x.
#define MUBLAS_DOT(NAME, T) \
  MUSA_PUBLIC mublasStatus_t mublas##NAME( \
      mublasHandle_t handle, int n, const T* x, int incx, const T* y, int incy, T* result);
MUBLAS_DOT(Sdot, float)
MUBLAS_DOT(Ddot, double)
MUBLAS_DOT(Cdotu, muComplex)
MUBLAS_DOT(Cdotc, muComplex)
MUBLAS_DOT(Zdotu, muDoubleComplex)
MUBLAS_DOT(Zdotc, muDoubleComplex)
#undef MUBLAS_DOT
MUSA_PUBLIC mublasStatus_t mublasCsscal(mublasHandle_t handle, int n, const float* alpha, muComplex* x, int incx);
MUSA_PUBLIC mublasStatus_t
mublasZdscal(mublasHandle_t handle, int n, const double* alpha, muDoubleComplex* x, int incx);

// ---- matrix and vector. Matrices are column-major: element (i, j) is at a[i + j * lda]
// -------------------------------

#define MUBLAS_GEMV(L, T) \
  MUSA_PUBLIC mublasStatus_t mublas##L##gemv( \
      mublasHandle_t handle, mublasOperation_t trans, int m, int n, const T* alpha, const T* a, int lda, const T* x, \
      int incx, const T* beta, T* y, int incy);
MUBLAS_GEMV(S, float)
MUBLAS_GEMV(D, double)
MUBLAS_GEMV(C, muComplex)
MUBLAS_GEMV(Z, muDoubleComplex)
#undef MUBLAS_GEMV
// gerc conjugates y.
#define MUBLAS_GER(NAME, T) \
  MUSA_PUBLIC mublasStatus_t mublas##NAME( \
      mublasHandle_t handle, int m, int n, const T* alpha, const T* x, int incx, const T* y, int incy, T* a, int lda);
MUBLAS_GER(Sger, float)
MUBLAS_GER(Dger, double)
MUBLAS_GER(Cgeru, muComplex)
MUBLAS_GER(Cgerc, muComplex)
MUBLAS_GER(Zgeru, muDoubleComplex)
MUBLAS_GER(Zgerc, muDoubleComplex)
#undef MUBLAS_GER

// ---- matrices --------------------------------------------------------------------------------------------------------

#define MUBLAS_GEMM(L, T) \
  MUSA_PUBLIC mublasStatus_t mublas##L##gemm( \
      mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k, const T* alpha, \
      const T* a, int lda, const T* b, int ldb, const T* beta, T* c, int ldc); \
  MUSA_PUBLIC mublasStatus_t mublas##L##gemmStridedBatched( \
      mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k, const T* alpha, \
      const T* a, int lda, long long stridea, const T* b, int ldb, long long strideb, const T* beta, T* c, int ldc, \
      long long stridec, int batch); \
  MUSA_PUBLIC mublasStatus_t mublas##L##gemmBatched( \
      mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k, const T* alpha, \
      const T* const a[], int lda, const T* const b[], int ldb, const T* beta, T* const c[], int ldc, int batch);
MUBLAS_GEMM(S, float)
MUBLAS_GEMM(D, double)
MUBLAS_GEMM(C, muComplex)
MUBLAS_GEMM(Z, muDoubleComplex)
#ifdef __cplusplus
MUBLAS_GEMM(H, __half)
#endif
#undef MUBLAS_GEMM
// In the complex functions, the matrices of a batch are not const.
#define MUBLAS_MATRIX_FUNCTIONS(L, T, CONST) \
  MUSA_PUBLIC mublasStatus_t mublas##L##trsm( \
      mublasHandle_t handle, mublasSideMode_t side, mublasFillMode_t uplo, mublasOperation_t trans, \
      mublasDiagType_t diag, int m, int n, const T* alpha, const T* a, int lda, T* b, int ldb); \
  MUSA_PUBLIC mublasStatus_t mublas##L##trsmBatched( \
      mublasHandle_t handle, mublasSideMode_t side, mublasFillMode_t uplo, mublasOperation_t trans, \
      mublasDiagType_t diag, int m, int n, const T* alpha, CONST T* const a[], int lda, T* const b[], int ldb, \
      int batch); \
  MUSA_PUBLIC mublasStatus_t mublas##L##geam( \
      mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, const T* alpha, \
      const T* a, int lda, const T* beta, const T* b, int ldb, T* c, int ldc); \
  MUSA_PUBLIC mublasStatus_t mublas##L##dgmm( \
      mublasHandle_t handle, mublasSideMode_t side, int m, int n, const T* a, int lda, const T* x, int incx, T* c, \
      int ldc); \
  MUSA_PUBLIC mublasStatus_t mublas##L##syrk( \
      mublasHandle_t handle, mublasFillMode_t uplo, mublasOperation_t trans, int n, int k, const T* alpha, const T* a, \
      int lda, const T* beta, T* c, int ldc);
MUBLAS_MATRIX_FUNCTIONS(S, float, const)
MUBLAS_MATRIX_FUNCTIONS(D, double, const)
MUBLAS_MATRIX_FUNCTIONS(C, muComplex, )
MUBLAS_MATRIX_FUNCTIONS(Z, muDoubleComplex, )
#undef MUBLAS_MATRIX_FUNCTIONS

// ---- matrices with mixed types. alpha and beta have the type of `compute`
// --------------------------------------------

MUSA_PUBLIC mublasStatus_t mublasGemmEx(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k, const void* alpha,
    const void* a, musaDataType atype, int lda, const void* b, musaDataType btype, int ldb, const void* beta, void* c,
    musaDataType ctype, int ldc, mublasComputeType_t compute, mublasGemmAlgo_t algo);
MUSA_PUBLIC mublasStatus_t mublasGemmStridedBatchedEx(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k, const void* alpha,
    const void* a, musaDataType atype, int lda, long long stridea, const void* b, musaDataType btype, int ldb,
    long long strideb, const void* beta, void* c, musaDataType ctype, int ldc, long long stridec, int batch,
    mublasComputeType_t compute, mublasGemmAlgo_t algo);
MUSA_PUBLIC mublasStatus_t mublasGemmBatchedEx(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k, const void* alpha,
    const void* const a[], musaDataType atype, int lda, const void* const b[], musaDataType btype, int ldb,
    const void* beta, void* const c[], musaDataType ctype, int ldc, int batch, mublasComputeType_t compute,
    mublasGemmAlgo_t algo);

MUSA_EXTERN_C_END

#ifdef __cplusplus
// SDK 3 took the compute type as a musaDataType, and programs still pass one.
static inline mublasComputeType_t mublas_compute_type(musaDataType type) {
  switch (type) {
    case MUSA_R_16F: return MUBLAS_COMPUTE_16F;
    case MUSA_R_64F:
    case MUSA_C_64F: return MUBLAS_COMPUTE_64F;
    case MUSA_R_32I: return MUBLAS_COMPUTE_32I;
    case MUSA_R_32F:
    case MUSA_C_32F: return MUBLAS_COMPUTE_32F;
    default: return static_cast<mublasComputeType_t>(0); // rejected as an invalid value
  }
}
static inline mublasStatus_t mublasGemmEx(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k, const void* alpha,
    const void* a, musaDataType atype, int lda, const void* b, musaDataType btype, int ldb, const void* beta, void* c,
    musaDataType ctype, int ldc, musaDataType compute, mublasGemmAlgo_t algo) {
  return mublasGemmEx(
      handle, transa, transb, m, n, k, alpha, a, atype, lda, b, btype, ldb, beta, c, ctype, ldc,
      mublas_compute_type(compute), algo);
}
static inline mublasStatus_t mublasGemmStridedBatchedEx(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k, const void* alpha,
    const void* a, musaDataType atype, int lda, long long stridea, const void* b, musaDataType btype, int ldb,
    long long strideb, const void* beta, void* c, musaDataType ctype, int ldc, long long stridec, int batch,
    musaDataType compute, mublasGemmAlgo_t algo) {
  return mublasGemmStridedBatchedEx(
      handle, transa, transb, m, n, k, alpha, a, atype, lda, stridea, b, btype, ldb, strideb, beta, c, ctype, ldc,
      stridec, batch, mublas_compute_type(compute), algo);
}
static inline mublasStatus_t mublasGemmBatchedEx(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k, const void* alpha,
    const void* const a[], musaDataType atype, int lda, const void* const b[], musaDataType btype, int ldb,
    const void* beta, void* const c[], musaDataType ctype, int ldc, int batch, musaDataType compute,
    mublasGemmAlgo_t algo) {
  return mublasGemmBatchedEx(
      handle, transa, transb, m, n, k, alpha, a, atype, lda, b, btype, ldb, beta, c, ctype, ldc, batch,
      mublas_compute_type(compute), algo);
}
#endif

#endif
