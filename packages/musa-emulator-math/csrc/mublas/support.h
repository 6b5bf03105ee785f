// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Code that the muBLAS levels share: the handle, the frame of a call, scalars, and views of matrices as tensors.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <cstdint>
#include <utility>

#include "mublas.h"
#include "support/entry.h"
#include "support/scalar.h"
#include "support/task.h"

struct mublasContext {
  static constexpr uint32_t kAlive = 0x4d424c41;
  uint32_t magic = kAlive; // first, so that a stale handle is detected
  musaStream_t stream = nullptr;
  mublasPointerMode_t pointer_mode = MUBLAS_POINTER_MODE_HOST;
  mublasMath_t math_mode = MUBLAS_DEFAULT_MATH;
  mublasAtomicsMode_t atomics_mode = MUBLAS_ATOMICS_NOT_ALLOWED;
};

namespace musa_emulator::blas {

template <class T>
struct Element;
template <>
struct Element<float> {
  using type = float;
  using real = float;
};
template <>
struct Element<double> {
  using type = double;
  using real = double;
};
template <>
struct Element<muComplex> {
  using type = c10::complex<float>;
  using real = float;
};
template <>
struct Element<muDoubleComplex> {
  using type = c10::complex<double>;
  using real = double;
};
template <>
struct Element<__half> {
  using type = at::Half;
  using real = at::Half;
};
// torch's element type for a type of the interface; both have the same bytes.
template <class T>
using element = typename Element<T>::type;
template <class T>
constexpr at::ScalarType type_of = c10::CppTypeToScalarType<element<T>>::value;

inline mublasStatus_t status_of(musaError_t error) {
  switch (error) {
    case musaSuccess: return MUBLAS_STATUS_SUCCESS;
    case musaErrorInvalidValue: return MUBLAS_STATUS_INVALID_VALUE;
    case musaErrorInvalidResourceHandle: return MUBLAS_STATUS_INVALID_HANDLE;
    case musaErrorMemoryAllocation: return MUBLAS_STATUS_MEMORY_ERROR;
    default: return MUBLAS_STATUS_INTERNAL_ERROR;
  }
}

using math::alive;

// Frame of an entry point: checks the handle and injects faults. `body()` enqueues work, or returns an error status.
template <ApiName Name, class Body>
mublasStatus_t call(mublasHandle_t handle, Body&& body) {
  if (!alive(handle)) {
    return MUBLAS_STATUS_INVALID_HANDLE;
  }
  return math::framed<Name>(status_of, std::forward<Body>(body));
}

template <class Task>
mublasStatus_t enqueue(mublasHandle_t handle, const char* name, Task&& task) {
  return status_of(math::enqueue(handle->stream, name, std::forward<Task>(task)));
}

// alpha and beta of a call, read according to the handle's pointer mode.
template <class T>
class Scalar : public math::Scalar<T> {
 public:
  Scalar(mublasHandle_t handle, const void* pointer)
      : math::Scalar<T>(handle->pointer_mode == MUBLAS_POINTER_MODE_DEVICE, pointer) {}
};

inline at::Tensor view(const void* data, at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type) {
  return at::from_blob(const_cast<void*>(data), sizes, strides, at::TensorOptions().dtype(type));
}
// A column-major matrix, or a batch of them.
inline at::Tensor matrix(const void* data, int64_t rows, int64_t columns, int64_t ld, at::ScalarType type) {
  return view(data, {rows, columns}, {1, ld}, type);
}
// The elements of a vector in memory order; with a negative increment, the last element is first.
inline at::Tensor vector(const void* data, int64_t n, int64_t inc, at::ScalarType type) {
  return view(data, {n}, {inc < 0 ? -inc : inc}, type);
}
// The elements in vector order, read-only.
inline at::Tensor ordered(const void* data, int64_t n, int64_t inc, at::ScalarType type) {
  const at::Tensor elements = vector(data, n, inc, type);
  return inc < 0 ? elements.flip(0) : elements;
}
// Writes values to a vector, in vector order.
inline void assign(void* data, int64_t n, int64_t inc, const at::Tensor& values) {
  vector(data, n, inc, values.scalar_type()).copy_(inc < 0 ? values.flip(0) : values);
}

inline at::Tensor transposed(const at::Tensor& a, mublasOperation_t operation) {
  return operation == MUBLAS_OP_N ? a
      : operation == MUBLAS_OP_T  ? a.transpose(-2, -1)
                                  : a.transpose(-2, -1).conj().resolve_conj();
}

inline bool known(mublasOperation_t operation) {
  return operation == MUBLAS_OP_N || operation == MUBLAS_OP_T || operation == MUBLAS_OP_C;
}
// Whether a leading dimension `ld` is valid for columns of `rows` elements.
inline bool holds(int64_t ld, int64_t rows) { return ld >= (rows > 1 ? rows : 1); }

// c = alpha * a * b + beta * c, for matrices or batches. c is not read if beta is 0, because it may be uninitialized.
void multiply(
    const at::Tensor& c, const at::Tensor& a, const at::Tensor& b, const at::Scalar& alpha, const at::Scalar& beta);

} // namespace musa_emulator::blas
