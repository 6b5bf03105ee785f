// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Arguments that may be absent.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace musa_ops_ported {

inline at::Tensor or_undefined(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() ? *tensor : at::Tensor();
}

// Contiguous and of this dtype; undefined stays so.
inline at::Tensor dense_as(const at::Tensor& tensor, at::ScalarType dtype) {
  return tensor.defined() ? tensor.to(dtype).contiguous() : tensor;
}
inline at::Tensor dense_as(const std::optional<at::Tensor>& tensor, at::ScalarType dtype) {
  return dense_as(or_undefined(tensor), dtype);
}

// Null where there is no tensor.
template <typename T>
const T* data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<T>() : nullptr;
}
template <typename T>
T* mutable_data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<T>() : nullptr;
}

} // namespace musa_ops_ported
