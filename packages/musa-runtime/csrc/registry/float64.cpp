// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <musa_runtime/float64.h>

#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarType.h>

#include <algorithm>

namespace musa_runtime::detail {
namespace {

bool is_float64(at::ScalarType dtype) { return dtype == at::kDouble || dtype == at::kComplexDouble; }

template <typename List>
bool any_needs_float64(const List& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const auto& tensor) { return needs_float64(tensor); });
}

} // namespace

bool needs_float64(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return false;
  }
  const at::ScalarType dtype = tensor.scalar_type();
  if (!tensor.is_privateuseone()) {
    // It may set the type of the result; a number of Python does not.
    return is_float64(dtype) && !tensor.unsafeGetTensorImpl()->is_wrapped_number();
  }
  return is_float64(dtype) || (c10::isIntegralType(dtype, true) && is_float64(c10::get_default_dtype_as_scalartype()));
}

bool needs_float64(const std::optional<at::Tensor>& tensor) { return tensor.has_value() && needs_float64(*tensor); }

bool needs_float64(at::TensorList tensors) { return any_needs_float64(tensors); }

bool needs_float64(const at::ITensorListRef& tensors) { return any_needs_float64(tensors); }

bool needs_float64(const c10::List<std::optional<at::Tensor>>& tensors) {
  return std::any_of(
      tensors.begin(), tensors.end(), [](const std::optional<at::Tensor>& tensor) { return needs_float64(tensor); });
}

bool needs_float64(std::optional<at::ScalarType> dtype) { return dtype.has_value() && is_float64(*dtype); }

bool needs_float64(const torch::jit::Stack& stack, size_t count) {
  return std::any_of(stack.end() - static_cast<std::ptrdiff_t>(count), stack.end(), [](const c10::IValue& value) {
    if (value.isTensor()) {
      return needs_float64(value.toTensor());
    }
    if (value.isTensorList()) {
      return any_needs_float64(value.toTensorVector());
    }
    return value.isOptionalTensorList() && needs_float64(value.toOptionalTensorList());
  });
}

} // namespace musa_runtime::detail
