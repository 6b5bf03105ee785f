// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Checks of tensor arguments for operators that have no meta function: backward and internal operators, whose shapes are
// right when autograd calls them and may not be when a program does. A kernel that takes one tensor's shape for another's
// would read past the end of the shorter one.
//
//   check_shape("_thnn_fused_gru_cell_backward", "workspace", workspace, {batch, 5 * width});
//
// An absent optional tensor passes every check.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace musa_runtime {

namespace detail {

template <typename... Expected>
[[noreturn, gnu::cold, gnu::noinline]] void refuse_shape(
    const char* op, const char* argument, const at::Tensor& tensor, const Expected&... expected) {
  TORCH_CHECK(false, op, ": expected ", argument, " of ", expected..., ", got shape ", tensor.sizes());
}

inline const at::Tensor* given(const at::Tensor& tensor) { return tensor.defined() ? &tensor : nullptr; }
inline const at::Tensor* given(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() ? given(*tensor) : nullptr;
}

} // namespace detail

// Raises unless the tensor has this shape.
template <typename OptionalTensor>
void check_shape(const char* op, const char* argument, const OptionalTensor& tensor, at::IntArrayRef shape) {
  const at::Tensor* const present = detail::given(tensor);
  if (present != nullptr && present->sizes() != shape) [[unlikely]] {
    detail::refuse_shape(op, argument, *present, "shape ", shape);
  }
}

// Raises unless the tensor has this number of elements, in any shape.
template <typename OptionalTensor>
void check_count(const char* op, const char* argument, const OptionalTensor& tensor, int64_t count) {
  const at::Tensor* const present = detail::given(tensor);
  if (present != nullptr && present->numel() != count) [[unlikely]] {
    detail::refuse_shape(op, argument, *present, count, " elements");
  }
}

// Raises unless the tensor has at least this number of dimensions.
template <typename OptionalTensor>
void check_least_dims(const char* op, const char* argument, const OptionalTensor& tensor, int64_t dims) {
  const at::Tensor* const present = detail::given(tensor);
  if (present != nullptr && present->dim() < dims) [[unlikely]] {
    detail::refuse_shape(op, argument, *present, "at least ", dims, " dimensions");
  }
}

// Raises unless the tensor has this number of dimensions.
template <typename OptionalTensor>
void check_dims(const char* op, const char* argument, const OptionalTensor& tensor, int64_t dims) {
  const at::Tensor* const present = detail::given(tensor);
  if (present != nullptr && present->dim() != dims) [[unlikely]] {
    detail::refuse_shape(op, argument, *present, dims, " dimensions");
  }
}

} // namespace musa_runtime
