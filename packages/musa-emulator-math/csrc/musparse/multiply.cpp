// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Products of a sparse and a dense operand. torch's CPU operators are fast only for a product with a CSR matrix; they
// convert transposed and COO matrices first, which takes at least ten times as long as these loops.
#include <ATen/ops/from_blob.h>

#include <ATen/Parallel.h>

#include <algorithm>

#include "musparse/indices.h"

using namespace musa_emulator;
using namespace musa_emulator::sparse;

namespace {

// The dense operand of a product, as rows and columns of op(b).
struct Dense {
  void* data;
  int64_t rows, columns, row_stride, column_stride;

  at::Tensor tensor(at::ScalarType type) const {
    return at::from_blob(data, {rows, columns}, {row_stride, column_stride}, at::TensorOptions().dtype(type));
  }
};

// Computes `Width` elements of a row of c = alpha * a * b + beta * c. Either the rows or the columns of b have stride
// 1. As a constant, that stride saves a multiplication per entry, or lets the element loop be vectorized.
template <int Width, bool UnitRows, class T, class Column>
void multiply_row(
    const musparseSpMatDescr& a, Range range, const T* b, int64_t b_stride, T alpha, T beta, T* c, int64_t c_stride) {
  const int64_t row_stride = UnitRows ? 1 : b_stride, column_stride = UnitRows ? b_stride : 1;
  const ColumnPositions<Column> position(a);
  const Column* columns = static_cast<const Column*>(a.column_data);
  const T* values = static_cast<const T*>(a.values);
  // Several partial sums: with a single one, each addition would wait for the previous one.
  constexpr int kTurns = Width == 1 ? 4 : 1;
  T partial[kTurns][Width] = {};
  const auto add = [&](int64_t entry, T* sums) {
    const T* row = b + static_cast<int64_t>(position(columns[entry])) * row_stride;
    for (int i = 0; i < Width; ++i) {
      sums[i] += values[entry] * row[i * column_stride];
    }
  };
  int64_t entry = range.begin;
  for (; entry + kTurns <= range.end; entry += kTurns) {
    for (int turn = 0; turn < kTurns; ++turn) {
      add(entry + turn, partial[turn]);
    }
  }
  for (; entry < range.end; ++entry) {
    add(entry, partial[0]);
  }
  for (int i = 0; i < Width; ++i) {
    T sum = partial[0][i];
    for (int turn = 1; turn < kTurns; ++turn) {
      sum += partial[turn][i];
    }
    T& out = c[i * c_stride];
    out = beta == T(0) ? alpha * sum : alpha * sum + beta * out;
  }
}

template <bool UnitRows, class T, class Row, class Column>
void multiply_rows(const musparseSpMatDescr& a, const Dense& b, T alpha, T beta, const Dense& c) {
  constexpr int kWidth = 8;
  constexpr int64_t kTaskSize = 16384; // multiplications
  const int64_t per_row = std::max<int64_t>(1, a.entries * c.columns / std::max<int64_t>(1, a.rows));
  const int64_t stride = UnitRows ? b.column_stride : b.row_stride;
  at::parallel_for(0, a.rows, std::max<int64_t>(1, kTaskSize / per_row), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const Range range = row_range<Row>(a, row);
      const T* from = static_cast<const T*>(b.data);
      T* to = static_cast<T*>(c.data) + row * c.row_stride;
      int64_t column = 0;
      for (; column + kWidth <= c.columns; column += kWidth) {
        multiply_row<kWidth, UnitRows, T, Column>(
            a, range, from + column * b.column_stride, stride, alpha, beta, to + column * c.column_stride,
            c.column_stride);
      }
      for (; column < c.columns; ++column) {
        multiply_row<1, UnitRows, T, Column>(
            a, range, from + column * b.column_stride, stride, alpha, beta, to + column * c.column_stride,
            c.column_stride);
      }
    }
  });
}

// c += alpha * op(a) * b, entry by entry.
template <class T, class Row, class Column>
void add_entries(const musparseSpMatDescr& a, bool transposed, const Dense& b, T alpha, const Dense& c) {
  const Column* columns = static_cast<const Column*>(a.column_data);
  const T* values = static_cast<const T*>(a.values);
  const auto add = [&](int64_t row, int64_t entry) {
    int64_t column = checked(columns[entry], a.base, a.columns);
    if (transposed) {
      std::swap(row, column);
    }
    const T factor = alpha * values[entry];
    const T* from = static_cast<const T*>(b.data) + column * b.row_stride;
    T* to = static_cast<T*>(c.data) + row * c.row_stride;
    for (int64_t i = 0; i < c.columns; ++i) {
      to[i * c.column_stride] += factor * from[i * b.column_stride];
    }
  };
  if (!a.csr) {
    const Row* rows = static_cast<const Row*>(a.row_data);
    for (int64_t entry = 0; entry < a.entries; ++entry) {
      add(checked(rows[entry], a.base, a.rows), entry);
    }
    return;
  }
  for (int64_t row = 0; row < a.rows; ++row) {
    const Range range = row_range<Row>(a, row);
    for (int64_t entry = range.begin; entry < range.end; ++entry) {
      add(row, entry);
    }
  }
}

// c = alpha * op(a) * b + beta * c
template <class T>
void multiply(musparseSpMatDescr a, musparseOperation_t operation, const Dense& b, T alpha, T beta, const Dense& c) {
  at::Tensor values; // owns the conjugated values
  if (operation == MUSPARSE_OPERATION_CONJUGATE_TRANSPOSE && c10::isComplexType(a.type)) {
    values = at::from_blob(a.values, {a.entries}, at::TensorOptions().dtype(a.type)).conj_physical();
    a.values = values.data_ptr();
  }
  const bool transposed = operation != MUSPARSE_OPERATION_NON_TRANSPOSE;
  with_indices(a, [&](auto row, auto column) {
    using Row = decltype(row);
    using Column = decltype(column);
    if (a.csr && !transposed) {
      TORCH_INTERNAL_ASSERT(b.row_stride == 1 || b.column_stride == 1 || b.columns == 1);
      b.row_stride == 1 ? multiply_rows<true, T, Row, Column>(a, b, alpha, beta, c)
                        : multiply_rows<false, T, Row, Column>(a, b, alpha, beta, c);
      return;
    }
    at::Tensor out = c.tensor(a.type);
    beta == T(0) ? out.zero_() : out.mul_(at::Scalar(beta));
    add_entries<T, Row, Column>(a, transposed, b, alpha, c);
  });
}

Dense dense(const musparseDnVecDescr& vector) { return {vector.values, vector.size, 1, 1, vector.size}; }
Dense dense(const musparseDnMatDescr& matrix) {
  return {matrix.values, matrix.rows, matrix.columns, matrix.row_stride, matrix.column_stride};
}

// Checks that the operands exist, have one type, and have matching sizes.
musparseStatus_t check(
    musparseHandle_t handle, musparseOperation_t operation, const void* alpha, const musparseSpMatDescr* a,
    at::ScalarType type_b, const Dense& b, const void* beta, at::ScalarType type_c, const Dense& c,
    musaDataType compute_type) {
  if (!alive(handle)) {
    return MUSPARSE_STATUS_INVALID_HANDLE;
  }
  if (!known(operation)) {
    return MUSPARSE_STATUS_INVALID_VALUE;
  }
  if (alpha == nullptr || beta == nullptr) {
    return MUSPARSE_STATUS_INVALID_POINTER;
  }
  const std::optional<at::ScalarType> computed = scalar_type(compute_type);
  if (!computed || *computed != a->type || type_b != a->type || type_c != a->type) {
    return MUSPARSE_STATUS_NOT_IMPLEMENTED;
  }
  const bool transposed = operation != MUSPARSE_OPERATION_NON_TRANSPOSE;
  const bool fits = b.rows == (transposed ? a->rows : a->columns) && c.rows == (transposed ? a->columns : a->rows) &&
      b.columns == c.columns;
  return fits ? MUSPARSE_STATUS_SUCCESS : MUSPARSE_STATUS_INVALID_SIZE;
}

musparseStatus_t check_vectors(
    musparseHandle_t handle, musparseOperation_t operation, const void* alpha, musparseSpMatDescr_t a,
    musparseDnVecDescr_t x, const void* beta, musparseDnVecDescr_t y, musaDataType compute_type) {
  if (!alive(a) || !alive(x) || !alive(y)) {
    return alive(handle) ? MUSPARSE_STATUS_INVALID_POINTER : MUSPARSE_STATUS_INVALID_HANDLE;
  }
  return check(handle, operation, alpha, a, x->type, dense(*x), beta, y->type, dense(*y), compute_type);
}

} // namespace

musparseStatus_t musparseSpMV_bufferSize(
    musparseHandle_t handle, musparseOperation_t operation, const void* alpha, musparseSpMatDescr_t a,
    musparseDnVecDescr_t x, const void* beta, musparseDnVecDescr_t y, musaDataType compute_type, musparseSpMVAlg_t,
    size_t* buffer_size) {
  return call<"musparseSpMV_bufferSize">([&] {
    const musparseStatus_t status = check_vectors(handle, operation, alpha, a, x, beta, y, compute_type);
    if (status != MUSPARSE_STATUS_SUCCESS || buffer_size == nullptr) {
      return status != MUSPARSE_STATUS_SUCCESS ? status : MUSPARSE_STATUS_INVALID_POINTER;
    }
    *buffer_size = kBufferSize;
    return MUSPARSE_STATUS_SUCCESS;
  });
}

musparseStatus_t musparseSpMV(
    musparseHandle_t handle, musparseOperation_t operation, const void* alpha, musparseSpMatDescr_t a,
    musparseDnVecDescr_t x, const void* beta, musparseDnVecDescr_t y, musaDataType compute_type, musparseSpMVAlg_t,
    void*) {
  return call<"musparseSpMV">([&] {
    const musparseStatus_t status = check_vectors(handle, operation, alpha, a, x, beta, y, compute_type);
    if (status != MUSPARSE_STATUS_SUCCESS) {
      return status;
    }
    return with_type(a->type, [&](auto zero) {
      using T = decltype(zero);
      const bool on_device = handle->pointer_mode == MUSPARSE_POINTER_MODE_DEVICE;
      return enqueue(
          handle, "musparseSpMV",
          [operation, matrix = *a, from = dense(*x), to = dense(*y), factor = math::Scalar<T>(on_device, alpha),
           kept = math::Scalar<T>(on_device, beta)] { multiply(matrix, operation, from, factor(), kept(), to); });
    });
  });
}

musparseStatus_t musparseSpMM(
    musparseHandle_t handle, musparseOperation_t operation_a, musparseOperation_t operation_b, const void* alpha,
    musparseSpMatDescr_t a, musparseDnMatDescr_t b, const void* beta, musparseDnMatDescr_t c, musaDataType compute_type,
    musparseSpMMAlg_t, musparseSpMMStage_t stage, size_t* buffer_size, void* buffer) {
  return call<"musparseSpMM">([&] {
    if (!alive(a) || !alive(b) || !alive(c)) {
      return alive(handle) ? MUSPARSE_STATUS_INVALID_POINTER : MUSPARSE_STATUS_INVALID_HANDLE;
    }
    if (!known(operation_b) || stage < MUSPARSE_SPMM_STAGE_AUTO || stage > MUSPARSE_SPMM_STAGE_COMPUTE) {
      return MUSPARSE_STATUS_INVALID_VALUE;
    }
    Dense right = dense(*b);
    if (operation_b != MUSPARSE_OPERATION_NON_TRANSPOSE) {
      std::swap(right.rows, right.columns);
      std::swap(right.row_stride, right.column_stride);
    }
    const musparseStatus_t status =
        check(handle, operation_a, alpha, a, b->type, right, beta, c->type, dense(*c), compute_type);
    if (status != MUSPARSE_STATUS_SUCCESS || stage == MUSPARSE_SPMM_STAGE_PREPROCESS) {
      return status;
    }
    if (stage == MUSPARSE_SPMM_STAGE_BUFFER_SIZE || (stage == MUSPARSE_SPMM_STAGE_AUTO && buffer == nullptr)) {
      if (buffer_size == nullptr) {
        return MUSPARSE_STATUS_INVALID_POINTER;
      }
      *buffer_size = kBufferSize;
      return MUSPARSE_STATUS_SUCCESS;
    }
    return with_type(a->type, [&](auto zero) {
      using T = decltype(zero);
      const bool on_device = handle->pointer_mode == MUSPARSE_POINTER_MODE_DEVICE;
      const bool conjugated = operation_b == MUSPARSE_OPERATION_CONJUGATE_TRANSPOSE && c10::isComplexType(a->type);
      return enqueue(
          handle, "musparseSpMM",
          [operation_a, conjugated, right, matrix = *a, to = dense(*c), factor = math::Scalar<T>(on_device, alpha),
           kept = math::Scalar<T>(on_device, beta)] {
            Dense from = right;
            at::Tensor values; // owns the conjugated operand
            if (conjugated) {
              values = right.tensor(matrix.type).conj_physical();
              from.data = values.data_ptr();
              from.row_stride = values.stride(0);
              from.column_stride = values.stride(1);
            }
            multiply(matrix, operation_a, from, factor(), kept(), to);
          });
    });
  });
}
