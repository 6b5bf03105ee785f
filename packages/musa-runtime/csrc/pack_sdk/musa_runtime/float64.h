// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/musa/MUSAMacros.h>

#include <optional>

// Finds calls that need float64. On a device without it, kernels of the device decline them (docs/design/capabilities.md).

namespace musa_runtime::detail {

/// A tensor of float64 or complex128, or one of integers on the device if results of integers have these types by default.
C10_MUSA_API bool needs_float64(const at::Tensor& tensor);
C10_MUSA_API bool needs_float64(const std::optional<at::Tensor>& tensor);
C10_MUSA_API bool needs_float64(at::TensorList tensors);
C10_MUSA_API bool needs_float64(const at::ITensorListRef& tensors);
C10_MUSA_API bool needs_float64(const c10::List<std::optional<at::Tensor>>& tensors);
/// The dtype of a result.
C10_MUSA_API bool needs_float64(std::optional<at::ScalarType> dtype);
/// The last `count` values of a stack.
C10_MUSA_API bool needs_float64(const torch::jit::Stack& stack, size_t count);

/// An argument of an operator's C++ signature. Other types hold no numbers on the device.
template <typename T>
bool argument_needs_float64(const T& argument) {
  if constexpr (
      std::is_same_v<T, at::Tensor> || std::is_same_v<T, std::optional<at::Tensor>> ||
      std::is_same_v<T, at::TensorList> || std::is_same_v<T, at::ITensorListRef> ||
      std::is_same_v<T, c10::List<std::optional<at::Tensor>>> || std::is_same_v<T, std::optional<at::ScalarType>>) {
    return needs_float64(argument);
  } else if constexpr (std::is_same_v<T, at::ScalarType>) {
    return needs_float64(std::optional<at::ScalarType>(argument));
  } else {
    return false;
  }
}

} // namespace musa_runtime::detail
