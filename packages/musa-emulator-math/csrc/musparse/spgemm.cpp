// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Products of two sparse matrices, row by row (Gustavson, Two fast algorithms for sparse matrices, 1978).
#include <algorithm>
#include <limits>
#include <vector>

#include "musparse/indices.h"

using namespace musa_emulator;
using namespace musa_emulator::sparse;

namespace {

// Calls `take(row, columns, sums)` for each row of a * b. `columns` lists the columns with entries in ascending
// order; `sums` is indexed by column.
template <class T, class Index, class Take>
void for_each_row(const musparseSpMatDescr& a, const musparseSpMatDescr& b, Take&& take) {
  const Index *columns_a = static_cast<const Index*>(a.column_data),
              *columns_b = static_cast<const Index*>(b.column_data);
  const T *values_a = static_cast<const T*>(a.values), *values_b = static_cast<const T*>(b.values);
  std::vector<int64_t> last_row(b.columns, -1), columns;
  std::vector<T> sums(b.columns);
  for (int64_t row = 0; row < a.rows; ++row) {
    columns.clear();
    const Range of_a = row_range<Index>(a, row);
    for (int64_t i = of_a.begin; i < of_a.end; ++i) {
      const Range of_b = row_range<Index>(b, checked(columns_a[i], a.base, a.columns));
      for (int64_t j = of_b.begin; j < of_b.end; ++j) {
        const int64_t column = checked(columns_b[j], b.base, b.columns);
        if (last_row[column] != row) {
          last_row[column] = row;
          sums[column] = T(0);
          columns.push_back(column);
        }
        sums[column] += values_a[i] * values_b[j];
      }
    }
    std::sort(columns.begin(), columns.end());
    take(row, columns, sums);
  }
}

// Writes the row pointers of c. Returns the number of entries.
template <class T, class Index>
int64_t count_entries(const musparseSpMatDescr& a, const musparseSpMatDescr& b, const musparseSpMatDescr& c) {
  Index* starts = static_cast<Index*>(c.row_data);
  int64_t total = 0;
  if (a.rows > 0) {
    starts[0] = static_cast<Index>(c.base);
  }
  for_each_row<T, Index>(a, b, [&](int64_t row, const std::vector<int64_t>& columns, const std::vector<T>&) {
    total += static_cast<int64_t>(columns.size());
    if (total + c.base > static_cast<int64_t>(std::numeric_limits<Index>::max())) {
      throw std::out_of_range("the product has more entries than its row pointers can count");
    }
    starts[row + 1] = static_cast<Index>(total + c.base);
  });
  return total;
}

template <class T, class Index>
void multiply(const musparseSpMatDescr& a, const musparseSpMatDescr& b, const musparseSpMatDescr& c, T alpha) {
  Index* to_columns = static_cast<Index*>(c.column_data);
  T* to_values = static_cast<T*>(c.values);
  for_each_row<T, Index>(a, b, [&](int64_t row, const std::vector<int64_t>& columns, const std::vector<T>& sums) {
    const Range range = row_range<Index>(c, row);
    if (range.end - range.begin != static_cast<int64_t>(columns.size())) {
      throw std::out_of_range("the row pointers of the product differ from those that MUSPARSE_SPGEMM_STAGE_NNZ wrote");
    }
    int64_t entry = range.begin;
    for (const int64_t column : columns) {
      to_columns[entry] = static_cast<Index>(column + c.base);
      to_values[entry++] = alpha * sums[column];
    }
  });
}

musparseStatus_t check(
    musparseOperation_t operation_a, musparseOperation_t operation_b, const musparseSpMatDescr& a,
    const musparseSpMatDescr& b, const musparseSpMatDescr& c, musaDataType compute_type) {
  if (!known(operation_a) || !known(operation_b)) {
    return MUSPARSE_STATUS_INVALID_VALUE;
  }
  const std::optional<at::ScalarType> computed = scalar_type(compute_type);
  bool served = operation_a == MUSPARSE_OPERATION_NON_TRANSPOSE && operation_b == MUSPARSE_OPERATION_NON_TRANSPOSE;
  for (const musparseSpMatDescr* matrix : {&a, &b, &c}) {
    served = served && matrix->csr && computed == matrix->type && matrix->wide_rows == c.wide_rows &&
        matrix->wide_columns == c.wide_rows;
  }
  if (!served) {
    return MUSPARSE_STATUS_NOT_IMPLEMENTED;
  }
  return a.columns == b.rows && c.rows == a.rows && c.columns == b.columns ? MUSPARSE_STATUS_SUCCESS
                                                                           : MUSPARSE_STATUS_INVALID_SIZE;
}

} // namespace

musparseStatus_t musparseSpGEMM(
    musparseHandle_t handle, musparseOperation_t operation_a, musparseOperation_t operation_b, const void* alpha,
    musparseSpMatDescr_t a, musparseSpMatDescr_t b, const void* beta, musparseSpMatDescr_t d, musparseSpMatDescr_t c,
    musaDataType compute_type, musparseSpGEMMAlg_t, musparseSpGEMMStage_t stage, size_t* buffer_size, void*) {
  return call<"musparseSpGEMM">([&] {
    if (!alive(handle)) {
      return MUSPARSE_STATUS_INVALID_HANDLE;
    }
    if (!alive(a) || !alive(b) || !alive(d) || !alive(c) || alpha == nullptr || beta == nullptr) {
      return MUSPARSE_STATUS_INVALID_POINTER;
    }
    const musparseStatus_t status = check(operation_a, operation_b, *a, *b, *c, compute_type);
    if (status != MUSPARSE_STATUS_SUCCESS) {
      return status;
    }
    return with_type(a->type, [&](auto zero) {
      using T = decltype(zero);
      const bool on_device = handle->pointer_mode == MUSPARSE_POINTER_MODE_DEVICE;
      const math::Scalar<T> factor(on_device, alpha), kept(on_device, beta);
      if (!on_device && kept() != T(0)) {
        return MUSPARSE_STATUS_NOT_IMPLEMENTED;
      }
      switch (stage) {
        case MUSPARSE_SPGEMM_STAGE_BUFFER_SIZE:
          if (buffer_size == nullptr) {
            return MUSPARSE_STATUS_INVALID_POINTER;
          }
          *buffer_size = kBufferSize;
          return MUSPARSE_STATUS_SUCCESS;
        case MUSPARSE_SPGEMM_STAGE_NNZ: {
          int64_t entries = 0;
          const musaError_t error =
              math::enqueue_and_wait(handle->stream, "musparseSpGEMM", [left = *a, right = *b, out = *c, &entries] {
                entries = out.wide_rows ? count_entries<T, int64_t>(left, right, out)
                                        : count_entries<T, int32_t>(left, right, out);
              });
          if (error == musaSuccess) {
            c->entries = entries;
          }
          return status_of(error);
        }
        case MUSPARSE_SPGEMM_STAGE_COMPUTE:
          if (c->entries > 0 && (c->column_data == nullptr || c->values == nullptr)) {
            return MUSPARSE_STATUS_INVALID_POINTER;
          }
          return enqueue(handle, "musparseSpGEMM", [left = *a, right = *b, out = *c, factor, kept] {
            if (kept() != T(0)) {
              throw std::invalid_argument("musparseSpGEMM supports only beta = 0");
            }
            out.wide_rows ? multiply<T, int64_t>(left, right, out, factor())
                          : multiply<T, int32_t>(left, right, out, factor());
          });
      }
      return MUSPARSE_STATUS_INVALID_VALUE;
    });
  });
}
