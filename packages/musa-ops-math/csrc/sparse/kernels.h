// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The arguments of the kernels. Included by host and device code, so it includes no header of torch.
#pragma once

#include <musa_runtime.h>

#include <cstdint>

namespace musa_ops_math::sparse {

enum class Dtype { kFloat16, kBFloat16, kFloat32, kFloat64, kComplex64, kComplex128 };

struct Number {
  double real = 0, imaginary = 0;
};

// A matrix in CSR format. Row r has the elements from pointers[r] to pointers[r + 1].
struct Rows {
  const void* pointers;
  const void* columns;
  const void* values;
  bool wide_indices; // int64 instead of int32
  int64_t count;     // of rows
  int64_t elements;
};

// A dense matrix; strides in elements.
struct Dense {
  void* data;
  int64_t row_stride, column_stride;
};

// c = alpha * a * b + beta * c, with `columns` columns. c is not read if beta is 0. 16-bit types are summed in float32.
void launch_product(
    const Rows& a, const Dense& b, const Dense& c, int64_t columns, Number alpha, Number beta, Dtype dtype,
    musaStream_t stream);

// to[k] = alpha * (row rows[k] of a) * (column columns[k] of b) + beta * values[k]; `inner` terms each.
void launch_sampled_product(
    const void* rows, const void* columns, bool wide_indices, int64_t count, const Dense& a, const Dense& b,
    int64_t inner, const void* values, void* to, Number alpha, Number beta, Dtype dtype, musaStream_t stream);

} // namespace musa_ops_math::sparse
