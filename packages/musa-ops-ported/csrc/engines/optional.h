// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Helpers for optional tensor arguments.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace musa_ops_ported {

inline at::Tensor or_undefined(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() ? *tensor : at::Tensor();
}

// Returns the tensor contiguous and in `dtype`; an undefined tensor stays undefined.
inline at::Tensor dense_as(const at::Tensor& tensor, at::ScalarType dtype) {
  return tensor.defined() ? tensor.to(dtype).contiguous() : tensor;
}
inline at::Tensor dense_as(const std::optional<at::Tensor>& tensor, at::ScalarType dtype) {
  return dense_as(or_undefined(tensor), dtype);
}

// Returns nullptr for an undefined tensor.
template <typename T>
const T* data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<T>() : nullptr;
}
template <typename T>
T* mutable_data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<T>() : nullptr;
}

} // namespace musa_ops_ported
