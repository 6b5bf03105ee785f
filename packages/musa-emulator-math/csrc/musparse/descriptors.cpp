// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Handles and descriptors of muSPARSE.
#include "musparse/support.h"

using namespace musa_emulator;
using namespace musa_emulator::sparse;

namespace {

template <ApiName Name, class Object>
musparseStatus_t destroy(Object* object, musparseStatus_t invalid) {
  return call<Name, kReleases>([&] {
    if (!alive(object)) {
      return invalid;
    }
    object->magic = 0;
    delete object;
    return MUSPARSE_STATUS_SUCCESS;
  });
}

bool known_index(musparseIndexType_t type) { return type == MUSPARSE_INDEX_32I || type == MUSPARSE_INDEX_64I; }

template <ApiName Name>
musparseStatus_t create(
    musparseSpMatDescr_t* matrix, musparseSpMatDescr made, musparseIndexType_t row_type,
    musparseIndexType_t column_type, musparseIndexBase_t base, musaDataType type) {
  return call<Name>([&] {
    const std::optional<at::ScalarType> element = scalar_type(type);
    if (!known_index(row_type) || !known_index(column_type) ||
        (base != MUSPARSE_INDEX_BASE_ZERO && base != MUSPARSE_INDEX_BASE_ONE)) {
      return MUSPARSE_STATUS_INVALID_VALUE;
    }
    if (!element) {
      return MUSPARSE_STATUS_NOT_IMPLEMENTED;
    }
    if (made.rows < 0 || made.columns < 0 || made.entries < 0) {
      return MUSPARSE_STATUS_INVALID_SIZE;
    }
    if (matrix == nullptr || (made.csr && made.rows > 0 && made.row_data == nullptr) ||
        (made.entries > 0 && (made.row_data == nullptr || made.column_data == nullptr || made.values == nullptr))) {
      return MUSPARSE_STATUS_INVALID_POINTER;
    }
    made.wide_rows = row_type == MUSPARSE_INDEX_64I;
    made.wide_columns = column_type == MUSPARSE_INDEX_64I;
    made.base = base == MUSPARSE_INDEX_BASE_ONE ? 1 : 0;
    made.type = *element;
    *matrix = new musparseSpMatDescr(made);
    return MUSPARSE_STATUS_SUCCESS;
  });
}

} // namespace

musparseStatus_t musparseCreate(musparseHandle_t* handle) {
  if (handle == nullptr) {
    return MUSPARSE_STATUS_INVALID_POINTER;
  }
  return status_of(api<"musparseCreate">([&] {
    int device;
    const musaError_t status = musaGetDevice(&device); // fails without a device
    if (status == musaSuccess) {
      *handle = new musparseContext;
    }
    return status;
  }));
}

musparseStatus_t musparseDestroy(musparseHandle_t handle) {
  return destroy<"musparseDestroy">(handle, MUSPARSE_STATUS_INVALID_HANDLE);
}

musparseStatus_t musparseGetVersion(musparseHandle_t handle, int* version) {
  if (!alive(handle)) {
    return MUSPARSE_STATUS_INVALID_HANDLE;
  }
  if (version == nullptr) {
    return MUSPARSE_STATUS_INVALID_POINTER;
  }
  *version = MUSPARSE_VERSION;
  return MUSPARSE_STATUS_SUCCESS;
}

musparseStatus_t musparseSetStream(musparseHandle_t handle, musaStream_t stream) {
  if (!alive(handle)) {
    return MUSPARSE_STATUS_INVALID_HANDLE;
  }
  handle->stream = stream;
  return MUSPARSE_STATUS_SUCCESS;
}

musparseStatus_t musparseSetPointerMode(musparseHandle_t handle, musparsePointerMode_t mode) {
  if (!alive(handle)) {
    return MUSPARSE_STATUS_INVALID_HANDLE;
  }
  if (mode != MUSPARSE_POINTER_MODE_HOST && mode != MUSPARSE_POINTER_MODE_DEVICE) {
    return MUSPARSE_STATUS_INVALID_VALUE;
  }
  handle->pointer_mode = mode;
  return MUSPARSE_STATUS_SUCCESS;
}

musparseStatus_t musparseCreateCsr(
    musparseSpMatDescr_t* matrix, int64_t rows, int64_t cols, int64_t nnz, void* row_pointers, void* columns,
    void* values, musparseIndexType_t row_pointer_type, musparseIndexType_t column_type, musparseIndexBase_t base,
    musaDataType type) {
  musparseSpMatDescr made;
  made.csr = true;
  made.rows = rows, made.columns = cols, made.entries = nnz;
  made.row_data = row_pointers, made.column_data = columns, made.values = values;
  return create<"musparseCreateCsr">(matrix, made, row_pointer_type, column_type, base, type);
}

musparseStatus_t musparseCreateCoo(
    musparseSpMatDescr_t* matrix, int64_t rows, int64_t cols, int64_t nnz, void* row_indices, void* columns,
    void* values, musparseIndexType_t index_type, musparseIndexBase_t base, musaDataType type) {
  musparseSpMatDescr made;
  made.csr = false;
  made.rows = rows, made.columns = cols, made.entries = nnz;
  made.row_data = row_indices, made.column_data = columns, made.values = values;
  return create<"musparseCreateCoo">(matrix, made, index_type, index_type, base, type);
}

musparseStatus_t musparseDestroySpMat(musparseSpMatDescr_t matrix) {
  return destroy<"musparseDestroySpMat">(matrix, MUSPARSE_STATUS_INVALID_POINTER);
}

musparseStatus_t musparseSpMatGetSize(musparseSpMatDescr_t matrix, int64_t* rows, int64_t* cols, int64_t* nnz) {
  if (!alive(matrix) || rows == nullptr || cols == nullptr || nnz == nullptr) {
    return MUSPARSE_STATUS_INVALID_POINTER;
  }
  *rows = matrix->rows;
  *cols = matrix->columns;
  *nnz = matrix->entries;
  return MUSPARSE_STATUS_SUCCESS;
}

musparseStatus_t musparseCsrSetPointers(musparseSpMatDescr_t matrix, void* row_pointers, void* columns, void* values) {
  if (!alive(matrix) || row_pointers == nullptr || (matrix->entries > 0 && (columns == nullptr || values == nullptr))) {
    return MUSPARSE_STATUS_INVALID_POINTER;
  }
  if (!matrix->csr) {
    return MUSPARSE_STATUS_INVALID_VALUE;
  }
  matrix->row_data = row_pointers;
  matrix->column_data = columns;
  matrix->values = values;
  return MUSPARSE_STATUS_SUCCESS;
}

musparseStatus_t musparseCreateDnVec(musparseDnVecDescr_t* vector, int64_t size, void* values, musaDataType type) {
  return call<"musparseCreateDnVec">([&] {
    const std::optional<at::ScalarType> element = scalar_type(type);
    if (!element) {
      return MUSPARSE_STATUS_NOT_IMPLEMENTED;
    }
    if (size < 0) {
      return MUSPARSE_STATUS_INVALID_SIZE;
    }
    if (vector == nullptr || (size > 0 && values == nullptr)) {
      return MUSPARSE_STATUS_INVALID_POINTER;
    }
    *vector = new musparseDnVecDescr{musparseDnVecDescr::kAlive, size, values, *element};
    return MUSPARSE_STATUS_SUCCESS;
  });
}

musparseStatus_t musparseDestroyDnVec(musparseDnVecDescr_t vector) {
  return destroy<"musparseDestroyDnVec">(vector, MUSPARSE_STATUS_INVALID_POINTER);
}

musparseStatus_t musparseCreateDnMat(
    musparseDnMatDescr_t* matrix, int64_t rows, int64_t cols, int64_t ld, void* values, musaDataType type,
    musparseOrder_t order) {
  return call<"musparseCreateDnMat">([&] {
    const std::optional<at::ScalarType> element = scalar_type(type);
    if (order != MUSPARSE_ORDER_ROW && order != MUSPARSE_ORDER_COLUMN) {
      return MUSPARSE_STATUS_INVALID_VALUE;
    }
    if (!element) {
      return MUSPARSE_STATUS_NOT_IMPLEMENTED;
    }
    if (rows < 0 || cols < 0 || ld < (order == MUSPARSE_ORDER_ROW ? cols : rows)) {
      return MUSPARSE_STATUS_INVALID_SIZE;
    }
    if (matrix == nullptr || (rows > 0 && cols > 0 && values == nullptr)) {
      return MUSPARSE_STATUS_INVALID_POINTER;
    }
    const bool by_row = order == MUSPARSE_ORDER_ROW;
    *matrix = new musparseDnMatDescr{
        musparseDnMatDescr::kAlive, rows, cols, by_row ? ld : 1, by_row ? 1 : ld, values, *element};
    return MUSPARSE_STATUS_SUCCESS;
  });
}

musparseStatus_t musparseDestroyDnMat(musparseDnMatDescr_t matrix) {
  return destroy<"musparseDestroyDnMat">(matrix, MUSPARSE_STATUS_INVALID_POINTER);
}
