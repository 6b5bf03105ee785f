// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// muSOLVER on torch's linear algebra for the CPU.
#include "musolver.h"

#include <c10/util/Exception.h>
#include <ATen/ops/geqrf.h>
#include <ATen/ops/linalg_householder_product.h>
#include <ATen/ops/linalg_lu_factor_ex.h>
#include <ATen/ops/linalg_lu_solve.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/linalg_svdvals.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "mublas/support.h"

using namespace musa_emulator;
using namespace musa_emulator::blas;

namespace {

template <ApiName Name>
mublasStatus_t buffer_size(bool known, bool fits, int* size) {
  mublasStatus_t status = MUBLAS_STATUS_SUCCESS;
  const musaError_t error = api<Name>([&] {
    if (size == nullptr) {
      status = MUBLAS_STATUS_INVALID_POINTER;
    } else if (!known) {
      status = MUBLAS_STATUS_INVALID_VALUE;
    } else if (!fits) {
      status = MUBLAS_STATUS_INVALID_SIZE;
    } else {
      *size = 256; // unused, but not 0: callers pass it to musaMalloc
    }
    return musaSuccess;
  });
  return error == musaSuccess ? status : status_of(error);
}

template <ApiName Name, class T>
mublasStatus_t getrf(mublasHandle_t handle, int m, int n, T* a, int lda, int* ipiv, int* info) {
  return call<Name>(handle, [&] {
    if (m < 0 || n < 0 || !holds(lda, m)) {
      return MUBLAS_STATUS_INVALID_SIZE;
    }
    if (info == nullptr || (m > 0 && n > 0 && (a == nullptr || ipiv == nullptr))) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    return enqueue(handle, Name.text, [=] {
      *info = 0;
      if (m == 0 || n == 0) {
        return;
      }
      const at::Tensor of_a = matrix(a, m, n, lda, type_of<T>);
      const auto [lu, pivots, failed] = at::linalg_lu_factor_ex(of_a);
      of_a.copy_(lu);
      vector(ipiv, std::min(m, n), 1, at::kInt).copy_(pivots);
      *info = failed.template item<int>();
    });
  });
}

template <ApiName Name, class T>
mublasStatus_t getrs(
    mublasHandle_t handle, mublasOperation_t operation, int n, int columns, const T* a, int lda, const int* ipiv, T* b,
    int ldb) {
  return call<Name>(handle, [&] {
    if (!known(operation)) {
      return MUBLAS_STATUS_INVALID_VALUE;
    }
    if (n < 0 || columns < 0 || !holds(lda, n) || !holds(ldb, n)) {
      return MUBLAS_STATUS_INVALID_SIZE;
    }
    if (n == 0 || columns == 0) {
      return MUBLAS_STATUS_SUCCESS;
    }
    if (a == nullptr || ipiv == nullptr || b == nullptr) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    return enqueue(handle, Name.text, [=] {
      if (std::any_of(ipiv, ipiv + n, [n](int pivot) { return pivot < 1 || pivot > n; })) {
        throw std::out_of_range("a pivot is out of range. Fix: pass the 1-based pivots that getrf wrote");
      }
      const at::Tensor lu = matrix(a, n, n, lda, type_of<T>), of_b = matrix(b, n, columns, ldb, type_of<T>);
      const at::Tensor pivots = vector(ipiv, n, 1, at::kInt);
      // Solves the transposed system of a complex matrix as the adjoint system with conjugated operands.
      const bool conjugated = operation == MUBLAS_OP_T && of_b.is_complex();
      const at::Tensor x = at::linalg_lu_solve(
          lu, pivots, conjugated ? of_b.conj_physical() : of_b, /*left=*/true, /*adjoint=*/operation != MUBLAS_OP_N);
      of_b.copy_(conjugated ? x.conj_physical() : x);
    });
  });
}

template <ApiName Name, class T>
mublasStatus_t geqrf(mublasHandle_t handle, int m, int n, T* a, int lda, T* tau) {
  return call<Name>(handle, [&] {
    if (m < 0 || n < 0 || !holds(lda, m)) {
      return MUBLAS_STATUS_INVALID_SIZE;
    }
    if (m == 0 || n == 0) {
      return MUBLAS_STATUS_SUCCESS;
    }
    if (a == nullptr || tau == nullptr) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    return enqueue(handle, Name.text, [=] {
      const at::Tensor of_a = matrix(a, m, n, lda, type_of<T>);
      const auto [factors, scales] = at::geqrf(of_a);
      of_a.copy_(factors);
      vector(tau, std::min(m, n), 1, type_of<T>).copy_(scales);
    });
  });
}

bool reflectors_fit(int m, int n, int k) { return k >= 0 && n >= k && m >= n; }

template <ApiName Name, class T>
mublasStatus_t orgqr(mublasHandle_t handle, int m, int n, int k, T* a, int lda, const T* tau) {
  return call<Name>(handle, [&] {
    if (!reflectors_fit(m, n, k) || !holds(lda, m)) {
      return MUBLAS_STATUS_INVALID_SIZE;
    }
    if (m == 0 || n == 0) {
      return MUBLAS_STATUS_SUCCESS;
    }
    if (a == nullptr || (k > 0 && tau == nullptr)) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    return enqueue(handle, Name.text, [=] {
      const at::Tensor of_a = matrix(a, m, n, lda, type_of<T>);
      of_a.copy_(at::linalg_householder_product(of_a, vector(tau, k, 1, type_of<T>)));
    });
  });
}

bool known(mublasSvect_t vectors) { return vectors >= MUBLAS_SVECT_ALL && vectors <= MUBLAS_SVECT_NONE; }
bool known(mublasSvect_t left, mublasSvect_t right, mublasWorkmode_t mode) {
  return known(left) && known(right) && (left != MUBLAS_SVECT_OVERWRITE || right != MUBLAS_SVECT_OVERWRITE) &&
      (mode == MUBLAS_OUTOFPLACE || mode == MUBLAS_INPLACE);
}
// Whether the vectors are written to a separate array.
bool apart(mublasSvect_t vectors) { return vectors == MUBLAS_SVECT_ALL || vectors == MUBLAS_SVECT_SINGULAR; }

template <ApiName Name, class T, class Real>
mublasStatus_t gesvd(
    mublasHandle_t handle, mublasSvect_t left, mublasSvect_t right, int m, int n, T* a, int lda, Real* s, T* u, int ldu,
    T* v, int ldv, T* e, mublasWorkmode_t mode, int* info) {
  return call<Name>(handle, [&] {
    const int count = std::min(m, n);
    if (!known(left, right, mode)) {
      return MUBLAS_STATUS_INVALID_VALUE;
    }
    if (m < 0 || n < 0 || !holds(lda, m) || (apart(left) && !holds(ldu, m)) ||
        (apart(right) && !holds(ldv, right == MUBLAS_SVECT_ALL ? n : count))) {
      return MUBLAS_STATUS_INVALID_SIZE;
    }
    if (info == nullptr ||
        (count > 0 &&
         (a == nullptr || s == nullptr || (apart(left) && u == nullptr) || (apart(right) && v == nullptr)))) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    return enqueue(handle, Name.text, [=] {
      *info = 0;
      if (count == 0) {
        return;
      }
      const at::Tensor of_a = matrix(a, m, n, lda, type_of<T>);
      const at::Tensor values = vector(s, count, 1, type_of<Real>);
      try {
        if (left == MUBLAS_SVECT_NONE && right == MUBLAS_SVECT_NONE) {
          values.copy_(at::linalg_svdvals(of_a));
        } else {
          const auto [of_u, of_s, of_v] =
              at::linalg_svd(of_a, /*full_matrices=*/left == MUBLAS_SVECT_ALL || right == MUBLAS_SVECT_ALL);
          values.copy_(of_s);
          const auto store = [&, k = count](
                                 mublasSvect_t vectors, at::Tensor computed, T* apart_data, int ld, int dim) {
            if (vectors == MUBLAS_SVECT_NONE) {
              return;
            }
            computed = vectors == MUBLAS_SVECT_ALL ? computed : computed.narrow(dim, 0, k);
            const int64_t rows = computed.size(0), columns = computed.size(1);
            (vectors == MUBLAS_SVECT_OVERWRITE ? matrix(a, rows, columns, lda, type_of<T>)
                                               : matrix(apart_data, rows, columns, ld, type_of<T>))
                .copy_(computed);
          };
          store(left, of_u, u, ldu, 1);
          store(right, of_v, v, ldv, 0);
        }
      } catch (const c10::LinAlgError&) {
        *info = 1; // torch does not report how many values did not converge
        return;
      }
      if (e != nullptr && count > 1) {
        vector(e, count - 1, 1, type_of<T>).zero_();
      }
    });
  });
}

} // namespace

#define FUNCTIONS(L, T, REAL, Q) \
  mublasStatus_t musolver##L##getrf_bufferSize(int m, int n, bool, int* size) { \
    return buffer_size<"musolver" #L "getrf_bufferSize">(true, m >= 0 && n >= 0, size); \
  } \
  mublasStatus_t musolver##L##getrf(mublasHandle_t h, int m, int n, T* a, int lda, int* ipiv, int* info, void*) { \
    return getrf<"musolver" #L "getrf">(h, m, n, a, lda, ipiv, info); \
  } \
  mublasStatus_t musolver##L##getrs_bufferSize(mublasOperation_t op, int n, int columns, int* size) { \
    return buffer_size<"musolver" #L "getrs_bufferSize">(blas::known(op), n >= 0 && columns >= 0, size); \
  } \
  mublasStatus_t musolver##L##getrs( \
      mublasHandle_t h, mublasOperation_t op, int n, int columns, const T* a, int lda, const int* ipiv, T* b, int ldb, \
      void*) { \
    return getrs<"musolver" #L "getrs">(h, op, n, columns, a, lda, ipiv, b, ldb); \
  } \
  mublasStatus_t musolver##L##geqrf_bufferSize(int m, int n, int* size) { \
    return buffer_size<"musolver" #L "geqrf_bufferSize">(true, m >= 0 && n >= 0, size); \
  } \
  mublasStatus_t musolver##L##geqrf(mublasHandle_t h, int m, int n, T* a, int lda, T* tau, void*) { \
    return geqrf<"musolver" #L "geqrf">(h, m, n, a, lda, tau); \
  } \
  mublasStatus_t musolver##L##Q##_bufferSize(int m, int n, int k, int* size) { \
    return buffer_size<"musolver" #L#Q "_bufferSize">(true, reflectors_fit(m, n, k), size); \
  } \
  mublasStatus_t musolver##L##Q(mublasHandle_t h, int m, int n, int k, T* a, int lda, const T* tau, void*) { \
    return orgqr<"musolver" #L#Q>(h, m, n, k, a, lda, tau); \
  } \
  mublasStatus_t musolver##L##gesvd_bufferSize( \
      mublasSvect_t left, mublasSvect_t right, int m, int n, int batch, mublasWorkmode_t mode, int* size) { \
    return buffer_size<"musolver" #L "gesvd_bufferSize">( \
        known(left, right, mode), m >= 0 && n >= 0 && batch >= 0, size); \
  } \
  mublasStatus_t musolver##L##gesvd( \
      mublasHandle_t h, mublasSvect_t left, mublasSvect_t right, int m, int n, T* a, int lda, REAL* s, T* u, int ldu, \
      T* v, int ldv, T* e, mublasWorkmode_t mode, int* info, void*) { \
    return gesvd<"musolver" #L "gesvd">(h, left, right, m, n, a, lda, s, u, ldu, v, ldv, e, mode, info); \
  }
FUNCTIONS(S, float, float, orgqr)
FUNCTIONS(D, double, double, orgqr)
FUNCTIONS(C, muComplex, float, ungqr)
FUNCTIONS(Z, muDoubleComplex, double, ungqr)
