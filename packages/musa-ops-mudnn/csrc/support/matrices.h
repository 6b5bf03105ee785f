// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The layouts of matrices that muDNN takes, and results of products.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>

#include "support/call.h"

namespace musa_ops_mudnn {

// muDNN reads a matrix as rows of adjacent elements with a leading dimension. The stride of a dimension of size 1 is
// never used, but must be valid for such a matrix; torch's stride may not be, so it is replaced.
inline bool is_stored_in_rows(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  return (columns == 1 || column_stride == 1) && (rows == 1 || row_stride >= columns);
}

enum class MatrixOrder { Rows, Columns, Neither };

// For a vector, a matrix, or a batch of matrices.
inline MatrixOrder matrix_order(const at::Tensor& tensor) {
  const at::IntArrayRef sizes = tensor.sizes();
  const at::IntArrayRef strides = tensor.strides();
  const size_t dims = sizes.size();
  if (dims == 1) {
    return sizes[0] == 1 || strides[0] >= 1 ? MatrixOrder::Rows : MatrixOrder::Neither;
  }
  const int64_t rows = sizes[dims - 2];
  const int64_t columns = sizes[dims - 1];
  return is_stored_in_rows(rows, columns, strides[dims - 2], strides[dims - 1]) ? MatrixOrder::Rows
      : is_stored_in_rows(columns, rows, strides[dims - 1], strides[dims - 2])  ? MatrixOrder::Columns
                                                                                : MatrixOrder::Neither;
}

// Describes the memory in row order: a column-major matrix is described as its transpose.
inline dnn::Tensor describe_stored(const at::Tensor& tensor, MatrixOrder order, Access access = Access::Write) {
  const at::IntArrayRef sizes = tensor.sizes();
  const at::IntArrayRef strides = tensor.strides();
  const size_t dims = sizes.size();
  if (dims == 1) {
    return describe_as(tensor, sizes, {sizes[0] == 1 ? 1 : strides[0]}, access);
  }
  const size_t outer = order == MatrixOrder::Rows ? dims - 2 : dims - 1;
  const size_t inner = order == MatrixOrder::Rows ? dims - 1 : dims - 2;
  const int64_t rows = sizes[outer];
  const int64_t columns = sizes[inner];
  const int64_t leading = rows == 1 ? columns : strides[outer];
  if (dims == 2) {
    return describe_as(tensor, {rows, columns}, {leading, 1}, access);
  }
  const int64_t batch = sizes[0];
  return describe_as(tensor, {batch, rows, columns}, {batch == 1 ? rows * leading : strides[0], leading, 1}, access);
}

// Whether a product can be written to it.
inline bool takes_result(const at::Tensor& out) {
  return matrix_order(out) == MatrixOrder::Rows && (out.dim() != 3 || out.size(0) == 1 || out.stride(0) > 0);
}

// Resizes the out= argument of an operator without a meta function.
inline at::Tensor& resized(at::Tensor& out, at::IntArrayRef sizes) {
  at::native::resize_output(out, sizes);
  return out;
}

inline bool takes_out_of(const at::Tensor& out, const at::Tensor& like, at::ScalarType dtype) {
  return out.is_privateuseone() && out.layout() == at::kStrided && out.scalar_type() == dtype &&
      out.device() == like.device();
}

} // namespace musa_ops_mudnn
