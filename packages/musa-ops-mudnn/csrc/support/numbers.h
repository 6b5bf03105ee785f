// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Conversion of number operands to the dtype of a tensor operand, as in torch's type promotion.
#pragma once

#include <ATen/Dispatch_v2.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "support/elementwise.h"
#include "support/predicates.h"

namespace musa_ops_mudnn {

// Wraps integers to the dtype. Floating numbers keep their precision, which torch's kernels use too.
inline at::Scalar wrapped(const at::Scalar& value, at::ScalarType dtype) {
  const auto wrap = [&value]<typename T>(T) {
    return at::Scalar(static_cast<int64_t>(static_cast<T>(value.toLong())));
  };
  switch (dtype) {
    case at::kByte: return wrap(uint8_t{});
    case at::kChar: return wrap(int8_t{});
    case at::kShort: return wrap(int16_t{});
    case at::kInt: return wrap(int32_t{});
    case at::kLong: return wrap(int64_t{});
    case at::kBool: return at::Scalar(static_cast<int64_t>(value.toBool()));
    default: return value;
  }
}

// The same, but rounds floating numbers to the dtype, as if they were elements of such a tensor.
inline at::Scalar rounded(const at::Scalar& value, at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf: return at::Scalar(static_cast<float>(c10::Half(static_cast<float>(value.toDouble()))));
    case at::kBFloat16: return at::Scalar(static_cast<float>(c10::BFloat16(static_cast<float>(value.toDouble()))));
    case at::kFloat: return at::Scalar(static_cast<float>(value.toDouble()));
    case at::kDouble: return at::Scalar(value.toDouble());
    default: return wrapped(value, dtype);
  }
}

// For factors passed by the caller. Raises torch's error if the dtype, or the dtype torch computes in, cannot represent
// the value.
inline at::Scalar fitting(const at::Scalar& value, at::ScalarType dtype) {
  switch (dtype) {
    case at::kByte: return at::Scalar(static_cast<int64_t>(value.to<uint8_t>()));
    case at::kChar: return at::Scalar(static_cast<int64_t>(value.to<int8_t>()));
    case at::kShort: return at::Scalar(static_cast<int64_t>(value.to<int16_t>()));
    case at::kInt: return at::Scalar(static_cast<int64_t>(value.to<int32_t>()));
    case at::kDouble: return value;
    default: return at::isFloatingType(dtype) ? at::Scalar(value.to<float>()) : value;
  }
}

// For values that become elements: rounds to the dtype, and raises torch's error if it cannot represent the value.
inline at::Scalar number_as(const at::Scalar& value, at::ScalarType dtype) {
  return AT_DISPATCH_V2(
      dtype, "number_as", AT_WRAP([&] { return at::Scalar(value.to<scalar_t>()); }), AT_EXPAND(AT_ALL_TYPES), at::kHalf,
      at::kBFloat16, at::kBool);
}

// Returns the operand as a tensor, for operations without a mode for numbers.
inline Operand on_device(const at::Tensor& operand, const at::Tensor& like, at::ScalarType dtype) {
  return is_cpu_number(operand) ? Operand(number_on_device(rounded(number_in(operand), dtype), like, dtype))
                                : in_dtype(operand, dtype);
}

// Any combination of numbers and tensors except BOOL only, for which muDNN's arithmetic is not documented.
inline bool serves_arithmetic(const at::Tensor& self, const at::Tensor& other) {
  return serves_with_numbers<all_types>(self, other) &&
      (self.scalar_type() != at::kBool || other.scalar_type() != at::kBool);
}

} // namespace musa_ops_mudnn
