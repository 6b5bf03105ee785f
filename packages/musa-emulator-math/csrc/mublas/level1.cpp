// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Level 1: vector operations.
#include <ATen/ops/dot.h>
#include <ATen/ops/vdot.h>
#include <ATen/ops/view_as_real.h>

#include "mublas/support.h"

using namespace musa_emulator;
using namespace musa_emulator::blas;

namespace {

template <ApiName Name, class T>
mublasStatus_t axpy(mublasHandle_t handle, int n, const T* alpha, const T* x, int incx, T* y, int incy) {
  return call<Name>(handle, [&] {
    if (n <= 0) {
      return MUBLAS_STATUS_SUCCESS;
    }
    if (alpha == nullptr || x == nullptr || y == nullptr) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    return enqueue(handle, Name.text, [=, factor = Scalar<element<T>>(handle, alpha)] {
      // As in the reference implementation, an increment of 0 uses one element n times.
      const at::Tensor values = ordered(x, n, incx, type_of<T>) * at::Scalar(factor());
      if (incy == 0) {
        view(y, {}, {}, type_of<T>).add_(values.sum());
      } else {
        vector(y, n, incy, type_of<T>).add_(incy < 0 ? values.flip(0) : values);
      }
    });
  });
}

template <ApiName Name, class T, class Factor>
mublasStatus_t scal(mublasHandle_t handle, int n, const Factor* alpha, T* x, int incx) {
  return call<Name>(handle, [&] {
    if (n <= 0 || incx <= 0) {
      return MUBLAS_STATUS_SUCCESS;
    }
    if (alpha == nullptr || x == nullptr) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    return enqueue(handle, Name.text, [=, factor = Scalar<element<Factor>>(handle, alpha)] {
      vector(x, n, incx, type_of<T>).mul_(at::Scalar(factor()));
    });
  });
}

template <ApiName Name, class T>
mublasStatus_t copy(mublasHandle_t handle, int n, const T* x, int incx, T* y, int incy) {
  return call<Name>(handle, [&] {
    if (n <= 0) {
      return MUBLAS_STATUS_SUCCESS;
    }
    if (x == nullptr || y == nullptr) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    return enqueue(handle, Name.text, [=] { assign(y, n, incy, ordered(x, n, incx, type_of<T>)); });
  });
}

template <ApiName Name, class T>
mublasStatus_t swap(mublasHandle_t handle, int n, T* x, int incx, T* y, int incy) {
  return call<Name>(handle, [&] {
    if (n <= 0) {
      return MUBLAS_STATUS_SUCCESS;
    }
    if (x == nullptr || y == nullptr) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    return enqueue(handle, Name.text, [=] {
      const at::Tensor kept = ordered(x, n, incx, type_of<T>).clone();
      assign(x, n, incx, ordered(y, n, incy, type_of<T>));
      assign(y, n, incy, kept);
    });
  });
}

// Writes the scalar result of `compute()` to the address for the pointer mode. Waits if that is host memory.
template <class R, class Compute>
mublasStatus_t reduce(mublasHandle_t handle, const char* name, R* result, Compute&& compute) {
  if (result == nullptr) {
    return MUBLAS_STATUS_INVALID_POINTER;
  }
  auto task = [result, compute = std::forward<Compute>(compute)] {
    *reinterpret_cast<element<R>*>(result) = compute();
  };
  return status_of(
      handle->pointer_mode == MUBLAS_POINTER_MODE_HOST ? math::enqueue_and_wait(handle->stream, name, std::move(task))
                                                       : math::enqueue(handle->stream, name, std::move(task)));
}

template <ApiName Name, bool conjugate, class T>
mublasStatus_t dot(mublasHandle_t handle, int n, const T* x, int incx, const T* y, int incy, T* result) {
  return call<Name>(handle, [&] {
    if (n > 0 && (x == nullptr || y == nullptr)) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    return reduce(handle, Name.text, result, [=]() -> element<T> {
      if (n <= 0) {
        return element<T>(0);
      }
      const at::Tensor a = ordered(x, n, incx, type_of<T>), b = ordered(y, n, incy, type_of<T>);
      return (conjugate ? at::vdot(a, b) : at::dot(a, b)).template item<element<T>>();
    });
  });
}

template <ApiName Name, class T>
mublasStatus_t nrm2(mublasHandle_t handle, int n, const T* x, int incx, typename Element<T>::real* result) {
  using Real = typename Element<T>::real;
  return call<Name>(handle, [&] {
    if (n > 0 && x == nullptr) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    return reduce(handle, Name.text, result, [=]() -> Real {
      if (n <= 0 || incx <= 0) {
        return 0;
      }
      // Computed in double, where the square of a float cannot overflow; doubles are scaled before they are squared.
      const at::Tensor sizes = vector(x, n, incx, type_of<T>).abs().to(at::kDouble);
      const double largest = sizes.max().item<double>();
      return static_cast<Real>(
          largest == 0 || !std::isfinite(largest) ? largest : largest * (sizes / largest).norm().item<double>());
    });
  });
}

// The size of a complex number is the sum of the sizes of its parts.
template <class T>
at::Tensor sizes_of(const T* x, int n, int incx) {
  const at::Tensor elements = vector(x, n, incx, type_of<T>);
  return elements.is_complex() ? at::view_as_real(elements).abs().sum(-1) : elements.abs();
}

template <ApiName Name, class T>
mublasStatus_t asum(mublasHandle_t handle, int n, const T* x, int incx, typename Element<T>::real* result) {
  using Real = typename Element<T>::real;
  return call<Name>(handle, [&] {
    if (n > 0 && x == nullptr) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    return reduce(handle, Name.text, result, [=]() -> Real {
      return n <= 0 || incx <= 0 ? Real(0) : sizes_of(x, n, incx).sum().template item<Real>();
    });
  });
}

// Writes the 1-based index of the first largest or smallest element.
template <ApiName Name, bool largest, class T>
mublasStatus_t iamax(mublasHandle_t handle, int n, const T* x, int incx, int* result) {
  return call<Name>(handle, [&] {
    if (n > 0 && x == nullptr) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    if (result == nullptr) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    auto task = [=] {
      if (n <= 0 || incx <= 0) {
        *result = 0;
        return;
      }
      const at::Tensor sizes = sizes_of(x, n, incx).contiguous();
      const at::Tensor extreme = largest ? sizes.max() : sizes.min();
      *result = 1 + static_cast<int>(sizes.eq(extreme).to(at::kByte).argmax().template item<int64_t>());
    };
    return status_of(
        handle->pointer_mode == MUBLAS_POINTER_MODE_HOST ? math::enqueue_and_wait(handle->stream, Name.text, task)
                                                         : math::enqueue(handle->stream, Name.text, task));
  });
}

} // namespace

#define LEVEL1(L, T, NRM2, ASUM, IAMAX, IAMIN, R) \
  mublasStatus_t mublas##L##axpy(mublasHandle_t h, int n, const T* alpha, const T* x, int incx, T* y, int incy) { \
    return axpy<"mublas" #L "axpy">(h, n, alpha, x, incx, y, incy); \
  } \
  mublasStatus_t mublas##L##scal(mublasHandle_t h, int n, const T* alpha, T* x, int incx) { \
    return scal<"mublas" #L "scal">(h, n, alpha, x, incx); \
  } \
  mublasStatus_t mublas##L##copy(mublasHandle_t h, int n, const T* x, int incx, T* y, int incy) { \
    return copy<"mublas" #L "copy">(h, n, x, incx, y, incy); \
  } \
  mublasStatus_t mublas##L##swap(mublasHandle_t h, int n, T* x, int incx, T* y, int incy) { \
    return swap<"mublas" #L "swap">(h, n, x, incx, y, incy); \
  } \
  mublasStatus_t NRM2(mublasHandle_t h, int n, const T* x, int incx, R* result) { \
    return nrm2<#NRM2>(h, n, x, incx, result); \
  } \
  mublasStatus_t ASUM(mublasHandle_t h, int n, const T* x, int incx, R* result) { \
    return asum<#ASUM>(h, n, x, incx, result); \
  } \
  mublasStatus_t IAMAX(mublasHandle_t h, int n, const T* x, int incx, int* result) { \
    return iamax<#IAMAX, true>(h, n, x, incx, result); \
  } \
  mublasStatus_t IAMIN(mublasHandle_t h, int n, const T* x, int incx, int* result) { \
    return iamax<#IAMIN, false>(h, n, x, incx, result); \
  }
#define DOT(name, conjugate, T) \
  mublasStatus_t name(mublasHandle_t h, int n, const T* x, int incx, const T* y, int incy, T* result) { \
    return dot<#name, conjugate>(h, n, x, incx, y, incy, result); \
  }

LEVEL1(S, float, mublasSnrm2, mublasSasum, mublasIsamax, mublasIsamin, float)
LEVEL1(D, double, mublasDnrm2, mublasDasum, mublasIdamax, mublasIdamin, double)
LEVEL1(C, muComplex, mublasScnrm2, mublasScasum, mublasIcamax, mublasIcamin, float)
LEVEL1(Z, muDoubleComplex, mublasDznrm2, mublasDzasum, mublasIzamax, mublasIzamin, double)
DOT(mublasSdot, false, float)
DOT(mublasDdot, false, double)
DOT(mublasCdotu, false, muComplex)
DOT(mublasCdotc, true, muComplex)
DOT(mublasZdotu, false, muDoubleComplex)
DOT(mublasZdotc, true, muDoubleComplex)
mublasStatus_t mublasCsscal(mublasHandle_t h, int n, const float* alpha, muComplex* x, int incx) {
  return scal<"mublasCsscal">(h, n, alpha, x, incx);
}
mublasStatus_t mublasZdscal(mublasHandle_t h, int n, const double* alpha, muDoubleComplex* x, int incx) {
  return scal<"mublasZdscal">(h, n, alpha, x, incx);
}
