// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Sets of dtypes, and macros that define a pointwise function from one expression for all dtypes of a set.
#pragma once

#include <ATen/Dispatch_v2.h>
#include <ATen/OpMathType.h>

#define MUSA_HALVES at::kHalf, at::kBFloat16
#define MUSA_FLOATING AT_EXPAND(AT_FLOATING_TYPES), MUSA_HALVES
#define MUSA_COMPLEX AT_EXPAND(AT_COMPLEX_TYPES), at::kComplexHalf
#define MUSA_FLOATING_AND_COMPLEX MUSA_FLOATING, MUSA_COMPLEX
#define MUSA_INTEGRAL AT_EXPAND(AT_INTEGRAL_TYPES)
#define MUSA_UNSIGNED AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES)
#define MUSA_REAL MUSA_INTEGRAL, MUSA_FLOATING
#define MUSA_NUMBERS MUSA_REAL, MUSA_COMPLEX
#define MUSA_ALL MUSA_NUMBERS, at::kBool

// Runs the block with scalar_t and op_t, the dtype that half types compute in: MUSA_DISPATCH(dtype, "name", (TYPES),
// { ... });
#define MUSA_UNWRAP(...) __VA_ARGS__
#define MUSA_DISPATCH(DTYPE, NAME, TYPES, ...) \
  AT_DISPATCH_V2( \
      DTYPE, NAME, AT_WRAP([&] { \
        using op_t [[maybe_unused]] = at::opmath_type<scalar_t>; \
        __VA_ARGS__ \
      }), \
      MUSA_UNWRAP TYPES)

// Runs the block with index_t, the type of the indices: MUSA_BY_INDEX_TYPE(dtype, { ... });
#define MUSA_BY_INDEX_TYPE(DTYPE, ...) \
  [&](const at::ScalarType index_dtype) { \
    if (index_dtype == at::kInt) { \
      using index_t = int32_t; \
      [&] __VA_ARGS__(); \
    } else { \
      using index_t = int64_t; \
      [&] __VA_ARGS__(); \
    } \
  }(DTYPE)

// pointwise() inspects the parameters of a function on the host; nvcc allows that only for __host__ __device__
// lambdas.

// Defines void NAME(iterator), which computes EXPRESSION over x of type op_t.
#define MUSA_UNARY(NAME, EXPRESSION, ...) \
  void NAME(at::TensorIteratorBase& iter) { \
    AT_DISPATCH_V2( \
        iter.common_dtype(), #NAME, AT_WRAP([&] { \
          pointwise(iter, [] __host__ __device__(scalar_t value) -> scalar_t { \
            using op_t = at::opmath_type<scalar_t>; \
            const op_t x = static_cast<op_t>(value); \
            return static_cast<scalar_t>(EXPRESSION); \
          }); \
        }), \
        __VA_ARGS__); \
  }

// The same for binary functions, over x and y.
#define MUSA_BINARY(NAME, EXPRESSION, ...) \
  void NAME(at::TensorIteratorBase& iter) { \
    AT_DISPATCH_V2( \
        iter.common_dtype(), #NAME, AT_WRAP([&] { \
          pointwise(iter, [] __host__ __device__(scalar_t first, scalar_t second) -> scalar_t { \
            using op_t = at::opmath_type<scalar_t>; \
            const op_t x = static_cast<op_t>(first), y = static_cast<op_t>(second); \
            return static_cast<scalar_t>(EXPRESSION); \
          }); \
        }), \
        __VA_ARGS__); \
  }
