// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Factorizations of dense matrices on the device (libmusolver). Functions take a muBLAS handle, enqueue work on its
// stream and return a muBLAS status. Matrices are column-major; matrices, pivots and `info` are in device memory.
// `buffer` has the size that `_bufferSize` writes; it is not used here and may be null.
#ifndef MUSA_MUSOLVER_H
#define MUSA_MUSOLVER_H

#include <stdbool.h>

#include "mublas.h"

// Which singular vectors musolver?gesvd computes, and where they are written.
typedef enum mublasSvect_t {
  MUBLAS_SVECT_ALL = 191,       // a square matrix
  MUBLAS_SVECT_SINGULAR = 192,  // the first min(m, n)
  MUBLAS_SVECT_OVERWRITE = 193, // the first min(m, n), overwriting the decomposed matrix
  MUBLAS_SVECT_NONE = 194
} mublasSvect_t;
// Accepted without effect.
typedef enum mublasWorkmode_t { MUBLAS_OUTOFPLACE = 201, MUBLAS_INPLACE = 202 } mublasWorkmode_t;

MUSA_EXTERN_C_BEGIN

// Types: S is float, D is double, C and Z are their complex types.
//
// getrf   A = P * L * U with partial pivoting, in place. Row i was exchanged with row ipiv[i] (1-based). *info is 0, or
//         the 1-based index of a diagonal element of U that is exactly 0.
// getrs   Solves op(A) * X = B with the output of getrf; X overwrites B.
// geqrf   A = Q * R: R in the upper triangle, and min(m, n) reflectors below it and in tau.
// orgqr   The m x n matrix Q of the first k reflectors, written to A; ungqr for complex types. m >= n >= k.
// gesvd   A = U * diag(s) * V. The rows of V are the conjugated right singular vectors. `e` is null, or has
//         min(m, n) - 1 elements, which are set to 0 on success. *info is 0, or 1 if the iteration did not converge.
//         A is unchanged unless overwritten.
#define MUSOLVER_FUNCTIONS(L, T, REAL, Q) \
  MUSA_PUBLIC mublasStatus_t musolver##L##getrf_bufferSize(int m, int n, bool pivot, int* size); \
  MUSA_PUBLIC mublasStatus_t musolver##L##getrf( \
      mublasHandle_t handle, int m, int n, T* a, int lda, int* ipiv, int* info, void* buffer); \
  MUSA_PUBLIC mublasStatus_t musolver##L##getrs_bufferSize( \
      mublasOperation_t operation, int n, int columns, int* size); \
  MUSA_PUBLIC mublasStatus_t musolver##L##getrs( \
      mublasHandle_t handle, mublasOperation_t operation, int n, int columns, const T* a, int lda, const int* ipiv, \
      T* b, int ldb, void* buffer); \
  MUSA_PUBLIC mublasStatus_t musolver##L##geqrf_bufferSize(int m, int n, int* size); \
  MUSA_PUBLIC mublasStatus_t musolver##L##geqrf( \
      mublasHandle_t handle, int m, int n, T* a, int lda, T* tau, void* buffer); \
  MUSA_PUBLIC mublasStatus_t musolver##L##Q##_bufferSize(int m, int n, int k, int* size); \
  MUSA_PUBLIC mublasStatus_t musolver##L##Q( \
      mublasHandle_t handle, int m, int n, int k, T* a, int lda, const T* tau, void* buffer); \
  MUSA_PUBLIC mublasStatus_t musolver##L##gesvd_bufferSize( \
      mublasSvect_t left, mublasSvect_t right, int m, int n, int batch, mublasWorkmode_t mode, int* size); \
  MUSA_PUBLIC mublasStatus_t musolver##L##gesvd( \
      mublasHandle_t handle, mublasSvect_t left, mublasSvect_t right, int m, int n, T* a, int lda, REAL* s, T* u, \
      int ldu, T* v, int ldv, T* e, mublasWorkmode_t mode, int* info, void* buffer);
MUSOLVER_FUNCTIONS(S, float, float, orgqr)
MUSOLVER_FUNCTIONS(D, double, double, orgqr)
MUSOLVER_FUNCTIONS(C, muComplex, float, ungqr)
MUSOLVER_FUNCTIONS(Z, muDoubleComplex, double, ungqr)
#undef MUSOLVER_FUNCTIONS

MUSA_EXTERN_C_END

#endif
