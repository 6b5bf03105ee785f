// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>
#include <c10/musa/MUSAMacros.h>

#include <optional>

// Finds calls that need float64. On a device without it, kernels of the device decline them (docs/design/capabilities.md).

namespace musa_runtime::detail {

/// The kinds of numbers among the arguments of a call; a sum of these bits.
using Numbers = unsigned;
inline constexpr Numbers kFloat64 = 1; // float64 or complex128, of a tensor on the device or as the dtype of the result
inline constexpr Numbers kFloat64OnHost = 2; // of a tensor without dimensions, which another operand may outrank
inline constexpr Numbers kOtherFloats = 4; // a tensor on the device
inline constexpr Numbers kOtherFloatsWithDims = 8;
inline constexpr Numbers kIntegers = 16; // results of integers may have torch's default dtype

C10_MUSA_API Numbers numbers_of(const at::Tensor& tensor);
C10_MUSA_API Numbers numbers_of(const std::optional<at::Tensor>& tensor);
C10_MUSA_API Numbers numbers_of(at::TensorList tensors);
C10_MUSA_API Numbers numbers_of(const at::ITensorListRef& tensors);
C10_MUSA_API Numbers numbers_of(const c10::List<std::optional<at::Tensor>>& tensors);
C10_MUSA_API Numbers numbers_of(std::optional<at::ScalarType> dtype);

/// Whether a call with these numbers may compute with float64.
C10_MUSA_API bool need_float64(Numbers numbers);
/// Whether a call with the arguments at the end of a stack may.
C10_MUSA_API bool needs_float64(const c10::FunctionSchema& schema, const torch::jit::Stack& stack);

/// An argument of an operator's C++ signature. Other types hold no numbers of the device.
template <typename T>
Numbers numbers_of_argument(const T& argument) {
  if constexpr (
      std::is_same_v<T, at::Tensor> || std::is_same_v<T, std::optional<at::Tensor>> ||
      std::is_same_v<T, at::TensorList> || std::is_same_v<T, at::ITensorListRef> ||
      std::is_same_v<T, c10::List<std::optional<at::Tensor>>> || std::is_same_v<T, std::optional<at::ScalarType>>) {
    return numbers_of(argument);
  } else if constexpr (std::is_same_v<T, at::ScalarType>) {
    return numbers_of(std::optional<at::ScalarType>(argument));
  } else {
    return 0;
  }
}

} // namespace musa_runtime::detail
