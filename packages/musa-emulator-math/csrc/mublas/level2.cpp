// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Level 2: operations on a matrix and vectors.
#include <ATen/ops/addmv.h>
#include <ATen/ops/outer.h>

#include "mublas/support.h"

using namespace musa_emulator;
using namespace musa_emulator::blas;

namespace {

template <ApiName Name, class T>
mublasStatus_t gemv(
    mublasHandle_t handle, mublasOperation_t trans, int m, int n, const T* alpha, const T* a, int lda, const T* x,
    int incx, const T* beta, T* y, int incy) {
  return call<Name>(handle, [&] {
    if (!known(trans)) {
      return MUBLAS_STATUS_INVALID_VALUE;
    }
    if (m < 0 || n < 0 || !holds(lda, m) || incx == 0 || incy == 0) {
      return MUBLAS_STATUS_INVALID_SIZE;
    }
    if (m == 0 || n == 0) {
      return MUBLAS_STATUS_SUCCESS;
    }
    if (alpha == nullptr || a == nullptr || x == nullptr || beta == nullptr || y == nullptr) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    return enqueue(
        handle, Name.text, [=, factor = Scalar<element<T>>(handle, alpha), kept = Scalar<element<T>>(handle, beta)] {
          const int64_t in = trans == MUBLAS_OP_N ? n : m, out = trans == MUBLAS_OP_N ? m : n;
          const at::Tensor of_a = transposed(matrix(a, m, n, lda, type_of<T>), trans);
          const at::Tensor of_x = ordered(x, in, incx, type_of<T>);
          // y is not read if beta is 0, because it may be uninitialized.
          if (incy > 0) {
            at::Tensor of_y = vector(y, out, incy, type_of<T>);
            at::addmv_out(of_y, of_y, of_a, of_x, at::Scalar(kept()), at::Scalar(factor()));
          } else {
            assign(
                y, out, incy,
                at::addmv(ordered(y, out, incy, type_of<T>), of_a, of_x, at::Scalar(kept()), at::Scalar(factor())));
          }
        });
  });
}

template <ApiName Name, bool conjugate, class T>
mublasStatus_t ger(
    mublasHandle_t handle, int m, int n, const T* alpha, const T* x, int incx, const T* y, int incy, T* a, int lda) {
  return call<Name>(handle, [&] {
    if (m < 0 || n < 0 || !holds(lda, m) || incx == 0 || incy == 0) {
      return MUBLAS_STATUS_INVALID_SIZE;
    }
    if (m == 0 || n == 0) {
      return MUBLAS_STATUS_SUCCESS;
    }
    if (alpha == nullptr || x == nullptr || y == nullptr || a == nullptr) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    return enqueue(handle, Name.text, [=, factor = Scalar<element<T>>(handle, alpha)] {
      const at::Tensor columns = ordered(y, n, incy, type_of<T>);
      matrix(a, m, n, lda, type_of<T>)
          .add_(
              at::outer(ordered(x, m, incx, type_of<T>), conjugate ? columns.conj().resolve_conj() : columns),
              at::Scalar(factor()));
    });
  });
}

} // namespace

#define GEMV(L, T) \
  mublasStatus_t mublas##L##gemv( \
      mublasHandle_t h, mublasOperation_t trans, int m, int n, const T* alpha, const T* a, int lda, const T* x, \
      int incx, const T* beta, T* y, int incy) { \
    return gemv<"mublas" #L "gemv">(h, trans, m, n, alpha, a, lda, x, incx, beta, y, incy); \
  }
#define GER(name, conjugate, T) \
  mublasStatus_t name( \
      mublasHandle_t h, int m, int n, const T* alpha, const T* x, int incx, const T* y, int incy, T* a, int lda) { \
    return ger<#name, conjugate>(h, m, n, alpha, x, incx, y, incy, a, lda); \
  }

GEMV(S, float)
GEMV(D, double)
GEMV(C, muComplex)
GEMV(Z, muDoubleComplex)
GER(mublasSger, false, float)
GER(mublasDger, false, double)
GER(mublasCgeru, false, muComplex)
GER(mublasCgerc, true, muComplex)
GER(mublasZgeru, false, muDoubleComplex)
GER(mublasZgerc, true, muDoubleComplex)
