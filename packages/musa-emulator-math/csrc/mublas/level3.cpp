// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Level 3: operations on matrices of one type.
#include <ATen/ops/linalg_solve_triangular.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "mublas/support.h"

using namespace musa_emulator;
using namespace musa_emulator::blas;

namespace {

mublasStatus_t check_gemm(
    mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k, int lda, int ldb, int ldc) {
  if (!known(transa) || !known(transb)) {
    return MUBLAS_STATUS_INVALID_VALUE;
  }
  const bool sizes = m >= 0 && n >= 0 && k >= 0 && holds(lda, transa == MUBLAS_OP_N ? m : k) &&
      holds(ldb, transb == MUBLAS_OP_N ? k : n) && holds(ldc, m);
  return sizes ? MUBLAS_STATUS_SUCCESS : MUBLAS_STATUS_INVALID_SIZE;
}

at::Tensor operand(const void* data, mublasOperation_t trans, int rows, int columns, int ld, at::ScalarType type) {
  return trans == MUBLAS_OP_N ? matrix(data, rows, columns, ld, type)
                              : transposed(matrix(data, columns, rows, ld, type), trans);
}

template <ApiName Name, class T>
mublasStatus_t gemm(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k, const T* alpha,
    const T* a, int lda, const T* b, int ldb, const T* beta, T* c, int ldc) {
  return call<Name>(handle, [&] {
    const mublasStatus_t status = check_gemm(transa, transb, m, n, k, lda, ldb, ldc);
    if (status != MUBLAS_STATUS_SUCCESS || m == 0 || n == 0) {
      return status;
    }
    if (alpha == nullptr || beta == nullptr || c == nullptr || (k > 0 && (a == nullptr || b == nullptr))) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    return enqueue(
        handle, Name.text, [=, factor = Scalar<element<T>>(handle, alpha), kept = Scalar<element<T>>(handle, beta)] {
          multiply(
              matrix(c, m, n, ldc, type_of<T>), operand(a, transa, m, k, lda, type_of<T>),
              operand(b, transb, k, n, ldb, type_of<T>), factor(), kept());
        });
  });
}

template <ApiName Name, class T>
mublasStatus_t gemm_strided(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k, const T* alpha,
    const T* a, int lda, long long stridea, const T* b, int ldb, long long strideb, const T* beta, T* c, int ldc,
    long long stridec, int batch) {
  return call<Name>(handle, [&] {
    const mublasStatus_t status = check_gemm(transa, transb, m, n, k, lda, ldb, ldc);
    if (status != MUBLAS_STATUS_SUCCESS) {
      return status;
    }
    if (batch < 0 || stridea < 0 || strideb < 0 || stridec < 0) {
      return MUBLAS_STATUS_INVALID_SIZE;
    }
    if (m == 0 || n == 0 || batch == 0) {
      return MUBLAS_STATUS_SUCCESS;
    }
    if (alpha == nullptr || beta == nullptr || c == nullptr || (k > 0 && (a == nullptr || b == nullptr))) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    return enqueue(
        handle, Name.text, [=, factor = Scalar<element<T>>(handle, alpha), kept = Scalar<element<T>>(handle, beta)] {
          const auto batched = [&](const T* data, mublasOperation_t trans, int rows, int columns, int ld,
                                   int64_t stride) {
            const at::Tensor stored = trans == MUBLAS_OP_N
                ? view(data, {batch, rows, columns}, {stride, 1, ld}, type_of<T>)
                : view(data, {batch, columns, rows}, {stride, 1, ld}, type_of<T>);
            return transposed(stored, trans);
          };
          multiply(
              view(c, {batch, m, n}, {stridec, 1, ldc}, type_of<T>), batched(a, transa, m, k, lda, stridea),
              batched(b, transb, k, n, ldb, strideb), factor(), kept());
        });
  });
}

template <ApiName Name, class T>
mublasStatus_t gemm_batched(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, int k, const T* alpha,
    const T* const* a, int lda, const T* const* b, int ldb, const T* beta, T* const* c, int ldc, int batch) {
  return call<Name>(handle, [&] {
    const mublasStatus_t status = check_gemm(transa, transb, m, n, k, lda, ldb, ldc);
    if (status != MUBLAS_STATUS_SUCCESS) {
      return status;
    }
    if (batch < 0) {
      return MUBLAS_STATUS_INVALID_SIZE;
    }
    if (m == 0 || n == 0 || batch == 0) {
      return MUBLAS_STATUS_SUCCESS;
    }
    if (alpha == nullptr || beta == nullptr || a == nullptr || b == nullptr || c == nullptr) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    return enqueue(
        handle, Name.text, [=, factor = Scalar<element<T>>(handle, alpha), kept = Scalar<element<T>>(handle, beta)] {
          for (int i = 0; i < batch; ++i) { // the pointer arrays are in device memory too
            multiply(
                matrix(c[i], m, n, ldc, type_of<T>), operand(a[i], transa, m, k, lda, type_of<T>),
                operand(b[i], transb, k, n, ldb, type_of<T>), factor(), kept());
          }
        });
  });
}

template <class T>
void solve(
    mublasSideMode_t side, mublasFillMode_t uplo, mublasOperation_t trans, mublasDiagType_t diag, int m, int n,
    element<T> factor, const T* a, int lda, T* b, int ldb) {
  const bool left = side == MUBLAS_SIDE_LEFT;
  const int size = left ? m : n;
  const at::Tensor of_a = transposed(matrix(a, size, size, lda, type_of<T>), trans);
  const bool upper = (uplo == MUBLAS_FILL_MODE_UPPER) == (trans == MUBLAS_OP_N);
  const at::Tensor of_b = matrix(b, m, n, ldb, type_of<T>);
  of_b.copy_(
      at::linalg_solve_triangular(
          of_a, of_b * at::Scalar(factor), upper, left, /*unitriangular=*/diag == MUBLAS_DIAG_UNIT));
}

mublasStatus_t check_trsm(
    mublasSideMode_t side, mublasFillMode_t uplo, mublasOperation_t trans, mublasDiagType_t diag, int m, int n, int lda,
    int ldb) {
  if ((side != MUBLAS_SIDE_LEFT && side != MUBLAS_SIDE_RIGHT) ||
      (uplo != MUBLAS_FILL_MODE_UPPER && uplo != MUBLAS_FILL_MODE_LOWER) || !known(trans) ||
      (diag != MUBLAS_DIAG_UNIT && diag != MUBLAS_DIAG_NON_UNIT)) {
    return MUBLAS_STATUS_INVALID_VALUE;
  }
  return m >= 0 && n >= 0 && holds(lda, side == MUBLAS_SIDE_LEFT ? m : n) && holds(ldb, m) ? MUBLAS_STATUS_SUCCESS
                                                                                           : MUBLAS_STATUS_INVALID_SIZE;
}

template <ApiName Name, class T>
mublasStatus_t trsm(
    mublasHandle_t handle, mublasSideMode_t side, mublasFillMode_t uplo, mublasOperation_t trans, mublasDiagType_t diag,
    int m, int n, const T* alpha, const T* a, int lda, T* b, int ldb) {
  return call<Name>(handle, [&] {
    const mublasStatus_t status = check_trsm(side, uplo, trans, diag, m, n, lda, ldb);
    if (status != MUBLAS_STATUS_SUCCESS || m == 0 || n == 0) {
      return status;
    }
    if (alpha == nullptr || a == nullptr || b == nullptr) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    return enqueue(handle, Name.text, [=, factor = Scalar<element<T>>(handle, alpha)] {
      solve(side, uplo, trans, diag, m, n, factor(), a, lda, b, ldb);
    });
  });
}

template <ApiName Name, class T>
mublasStatus_t trsm_batched(
    mublasHandle_t handle, mublasSideMode_t side, mublasFillMode_t uplo, mublasOperation_t trans, mublasDiagType_t diag,
    int m, int n, const T* alpha, const T* const* a, int lda, T* const* b, int ldb, int batch) {
  return call<Name>(handle, [&] {
    const mublasStatus_t status = check_trsm(side, uplo, trans, diag, m, n, lda, ldb);
    if (status != MUBLAS_STATUS_SUCCESS) {
      return status;
    }
    if (batch < 0) {
      return MUBLAS_STATUS_INVALID_SIZE;
    }
    if (m == 0 || n == 0 || batch == 0) {
      return MUBLAS_STATUS_SUCCESS;
    }
    if (alpha == nullptr || a == nullptr || b == nullptr) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    return enqueue(handle, Name.text, [=, factor = Scalar<element<T>>(handle, alpha)] {
      for (int i = 0; i < batch; ++i) {
        solve(side, uplo, trans, diag, m, n, factor(), a[i], lda, b[i], ldb);
      }
    });
  });
}

template <ApiName Name, class T>
mublasStatus_t geam(
    mublasHandle_t handle, mublasOperation_t transa, mublasOperation_t transb, int m, int n, const T* alpha, const T* a,
    int lda, const T* beta, const T* b, int ldb, T* c, int ldc) {
  return call<Name>(handle, [&] {
    if (!known(transa) || !known(transb)) {
      return MUBLAS_STATUS_INVALID_VALUE;
    }
    if (m < 0 || n < 0 || !holds(lda, transa == MUBLAS_OP_N ? m : n) || !holds(ldb, transb == MUBLAS_OP_N ? m : n) ||
        !holds(ldc, m)) {
      return MUBLAS_STATUS_INVALID_SIZE;
    }
    if (m == 0 || n == 0) {
      return MUBLAS_STATUS_SUCCESS;
    }
    if (alpha == nullptr || beta == nullptr || c == nullptr) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    return enqueue(
        handle, Name.text, [=, factor = Scalar<element<T>>(handle, alpha), other = Scalar<element<T>>(handle, beta)] {
          // If the factor is 0, the matrix is not read and may be null.
          at::Tensor sum = at::zeros({m, n}, type_of<T>);
          if (factor() != element<T>(0)) {
            sum = operand(a, transa, m, n, lda, type_of<T>) * at::Scalar(factor());
          }
          if (other() != element<T>(0)) {
            sum = sum + operand(b, transb, m, n, ldb, type_of<T>) * at::Scalar(other());
          }
          matrix(c, m, n, ldc, type_of<T>).copy_(sum);
        });
  });
}

template <ApiName Name, class T>
mublasStatus_t dgmm(
    mublasHandle_t handle, mublasSideMode_t side, int m, int n, const T* a, int lda, const T* x, int incx, T* c,
    int ldc) {
  return call<Name>(handle, [&] {
    if (side != MUBLAS_SIDE_LEFT && side != MUBLAS_SIDE_RIGHT) {
      return MUBLAS_STATUS_INVALID_VALUE;
    }
    if (m < 0 || n < 0 || !holds(lda, m) || !holds(ldc, m) || incx == 0) {
      return MUBLAS_STATUS_INVALID_SIZE;
    }
    if (m == 0 || n == 0) {
      return MUBLAS_STATUS_SUCCESS;
    }
    if (a == nullptr || x == nullptr || c == nullptr) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    return enqueue(handle, Name.text, [=] {
      const bool left = side == MUBLAS_SIDE_LEFT;
      const at::Tensor diagonal = ordered(x, left ? m : n, incx, type_of<T>).unsqueeze(left ? 1 : 0);
      matrix(c, m, n, ldc, type_of<T>).copy_(matrix(a, m, n, lda, type_of<T>) * diagonal);
    });
  });
}

template <ApiName Name, class T>
mublasStatus_t syrk(
    mublasHandle_t handle, mublasFillMode_t uplo, mublasOperation_t trans, int n, int k, const T* alpha, const T* a,
    int lda, const T* beta, T* c, int ldc) {
  return call<Name>(handle, [&] {
    if ((uplo != MUBLAS_FILL_MODE_UPPER && uplo != MUBLAS_FILL_MODE_LOWER) || !known(trans)) {
      return MUBLAS_STATUS_INVALID_VALUE;
    }
    if (n < 0 || k < 0 || !holds(lda, trans == MUBLAS_OP_N ? n : k) || !holds(ldc, n)) {
      return MUBLAS_STATUS_INVALID_SIZE;
    }
    if (n == 0) {
      return MUBLAS_STATUS_SUCCESS;
    }
    if (alpha == nullptr || beta == nullptr || c == nullptr || (k > 0 && a == nullptr)) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    return enqueue(
        handle, Name.text, [=, factor = Scalar<element<T>>(handle, alpha), kept = Scalar<element<T>>(handle, beta)] {
          // syrk does not conjugate complex matrices; herk does.
          const at::Tensor rows = operand(a, trans == MUBLAS_OP_N ? MUBLAS_OP_N : MUBLAS_OP_T, n, k, lda, type_of<T>);
          at::Tensor sum = at::mm(rows, rows.t()) * at::Scalar(factor());
          const at::Tensor of_c = matrix(c, n, n, ldc, type_of<T>);
          if (kept() != element<T>(0)) {
            sum = sum + of_c * at::Scalar(kept());
          }
          const at::Tensor ones = at::ones({n, n}, at::kBool);
          const at::Tensor written = uplo == MUBLAS_FILL_MODE_UPPER ? ones.triu() : ones.tril();
          of_c.copy_(at::where(written, sum, of_c));
        });
  });
}

} // namespace

#define GEMM(L, T) \
  mublasStatus_t mublas##L##gemm( \
      mublasHandle_t h, mublasOperation_t ta, mublasOperation_t tb, int m, int n, int k, const T* alpha, const T* a, \
      int lda, const T* b, int ldb, const T* beta, T* c, int ldc) { \
    return gemm<"mublas" #L "gemm">(h, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc); \
  } \
  mublasStatus_t mublas##L##gemmStridedBatched( \
      mublasHandle_t h, mublasOperation_t ta, mublasOperation_t tb, int m, int n, int k, const T* alpha, const T* a, \
      int lda, long long sa, const T* b, int ldb, long long sb, const T* beta, T* c, int ldc, long long sc, \
      int batch) { \
    return gemm_strided<"mublas" #L "gemmStridedBatched">( \
        h, ta, tb, m, n, k, alpha, a, lda, sa, b, ldb, sb, beta, c, ldc, sc, batch); \
  } \
  mublasStatus_t mublas##L##gemmBatched( \
      mublasHandle_t h, mublasOperation_t ta, mublasOperation_t tb, int m, int n, int k, const T* alpha, \
      const T* const a[], int lda, const T* const b[], int ldb, const T* beta, T* const c[], int ldc, int batch) { \
    return gemm_batched<"mublas" #L "gemmBatched">(h, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, batch); \
  }
#define OTHERS(L, T, CONST) \
  mublasStatus_t mublas##L##trsm( \
      mublasHandle_t h, mublasSideMode_t side, mublasFillMode_t uplo, mublasOperation_t trans, mublasDiagType_t diag, \
      int m, int n, const T* alpha, const T* a, int lda, T* b, int ldb) { \
    return trsm<"mublas" #L "trsm">(h, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb); \
  } \
  mublasStatus_t mublas##L##trsmBatched( \
      mublasHandle_t h, mublasSideMode_t side, mublasFillMode_t uplo, mublasOperation_t trans, mublasDiagType_t diag, \
      int m, int n, const T* alpha, CONST T* const a[], int lda, T* const b[], int ldb, int batch) { \
    return trsm_batched<"mublas" #L "trsmBatched", T>(h, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb, batch); \
  } \
  mublasStatus_t mublas##L##geam( \
      mublasHandle_t h, mublasOperation_t ta, mublasOperation_t tb, int m, int n, const T* alpha, const T* a, int lda, \
      const T* beta, const T* b, int ldb, T* c, int ldc) { \
    return geam<"mublas" #L "geam">(h, ta, tb, m, n, alpha, a, lda, beta, b, ldb, c, ldc); \
  } \
  mublasStatus_t mublas##L##dgmm( \
      mublasHandle_t h, mublasSideMode_t side, int m, int n, const T* a, int lda, const T* x, int incx, T* c, \
      int ldc) { \
    return dgmm<"mublas" #L "dgmm">(h, side, m, n, a, lda, x, incx, c, ldc); \
  } \
  mublasStatus_t mublas##L##syrk( \
      mublasHandle_t h, mublasFillMode_t uplo, mublasOperation_t trans, int n, int k, const T* alpha, const T* a, \
      int lda, const T* beta, T* c, int ldc) { \
    return syrk<"mublas" #L "syrk">(h, uplo, trans, n, k, alpha, a, lda, beta, c, ldc); \
  }

GEMM(S, float)
GEMM(D, double)
GEMM(C, muComplex)
GEMM(Z, muDoubleComplex)
GEMM(H, __half)
OTHERS(S, float, const)
OTHERS(D, double, const)
OTHERS(C, muComplex, )
OTHERS(Z, muDoubleComplex, )
