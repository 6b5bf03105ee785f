// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Handles, descriptors and the entry-point frame of muSPARSE.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "musparse.h"
#include "support/entry.h"
#include "support/scalar.h"
#include "support/task.h"

// `magic` is the first field of each object, so that a stale or wrong pointer is detected.
struct musparseContext {
  static constexpr uint32_t kAlive = 0x4d535043;
  uint32_t magic = kAlive;
  musaStream_t stream = nullptr;
  musparsePointerMode_t pointer_mode = MUSPARSE_POINTER_MODE_HOST;
};

struct musparseSpMatDescr {
  static constexpr uint32_t kAlive = 0x4d53504d;
  uint32_t magic = kAlive;
  bool csr = true; // else COO
  int64_t rows = 0, columns = 0, entries = 0;
  void* row_data = nullptr; // CSR: the first entry of each row; COO: the row of each entry
  void* column_data = nullptr;
  void* values = nullptr;
  bool wide_rows = false, wide_columns = false; // whether indices are 64-bit
  int64_t base = 0;
  at::ScalarType type = at::kFloat;
};

struct musparseDnVecDescr {
  static constexpr uint32_t kAlive = 0x4d534456;
  uint32_t magic = kAlive;
  int64_t size = 0;
  void* values = nullptr;
  at::ScalarType type = at::kFloat;
};

struct musparseDnMatDescr {
  static constexpr uint32_t kAlive = 0x4d53444d;
  uint32_t magic = kAlive;
  int64_t rows = 0, columns = 0, row_stride = 0, column_stride = 0;
  void* values = nullptr;
  at::ScalarType type = at::kFloat;
};

namespace musa_emulator::sparse {

inline std::optional<at::ScalarType> scalar_type(musaDataType type) {
  switch (type) {
    case MUSA_R_32F: return at::kFloat;
    case MUSA_R_64F: return at::kDouble;
    case MUSA_C_32F: return at::kComplexFloat;
    case MUSA_C_64F: return at::kComplexDouble;
    default: return std::nullopt;
  }
}

// Calls `body` with a zero of the element type, to select a type at run time.
template <class Body>
auto with_type(at::ScalarType type, Body&& body) {
  switch (type) {
    case at::kDouble: return body(double());
    case at::kComplexFloat: return body(c10::complex<float>());
    case at::kComplexDouble: return body(c10::complex<double>());
    default: return body(float());
  }
}

// Calls `body` with a zero of the row data type and a zero of the column index type.
template <class Body>
void with_indices(const musparseSpMatDescr& a, Body&& body) {
  const auto columns = [&](auto row) { a.wide_columns ? body(row, int64_t()) : body(row, int32_t()); };
  a.wide_rows ? columns(int64_t()) : columns(int32_t());
}

inline musparseStatus_t status_of(musaError_t error) {
  switch (error) {
    case musaSuccess: return MUSPARSE_STATUS_SUCCESS;
    case musaErrorInvalidValue: return MUSPARSE_STATUS_INVALID_VALUE;
    case musaErrorInvalidResourceHandle: return MUSPARSE_STATUS_INVALID_HANDLE;
    case musaErrorMemoryAllocation: return MUSPARSE_STATUS_MEMORY_ERROR;
    default: return MUSPARSE_STATUS_INTERNAL_ERROR;
  }
}

using math::alive;

template <ApiName Name, unsigned Traits = kOrdinary, class Body>
musparseStatus_t call(Body&& body) {
  return math::framed<Name, Traits>(status_of, std::forward<Body>(body));
}

template <class Task>
musparseStatus_t enqueue(musparseHandle_t handle, const char* name, Task&& task) {
  return status_of(math::enqueue(handle->stream, name, std::forward<Task>(task)));
}

// The size of every buffer. Not 0, although no function uses it: callers that allocate 0 bytes would pass null, which
// requests the size.
constexpr size_t kBufferSize = 256;

inline bool known(musparseOperation_t operation) {
  return operation == MUSPARSE_OPERATION_NON_TRANSPOSE || operation == MUSPARSE_OPERATION_TRANSPOSE ||
      operation == MUSPARSE_OPERATION_CONJUGATE_TRANSPOSE;
}

} // namespace musa_emulator::sparse
