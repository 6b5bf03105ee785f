// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <musa_runtime/float64.h>

#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarType.h>

namespace musa_runtime::detail {
namespace {

bool is_float64(at::ScalarType dtype) { return dtype == at::kDouble || dtype == at::kComplexDouble; }

template <typename List>
Numbers numbers_of_all(const List& tensors) {
  Numbers found = 0;
  for (const auto& tensor : tensors) {
    found |= numbers_of(tensor);
  }
  return found;
}

bool is_dtype(const c10::Argument& argument) {
  const c10::TypePtr& type = argument.real_type();
  return type->kind() == c10::TypeKind::ScalarTypeType ||
      (type->kind() == c10::TypeKind::OptionalType && type->containedType(0)->kind() == c10::TypeKind::ScalarTypeType);
}

} // namespace

Numbers numbers_of(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return 0;
  }
  const at::ScalarType dtype = tensor.scalar_type();
  const bool wide = is_float64(dtype);
  if (!tensor.is_privateuseone()) {
    if (!wide || tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
      return 0; // a number of Python takes the type of the other operand
    }
    return tensor.dim() == 0 ? kFloat64OnHost : kFloat64;
  }
  if (wide) {
    return kFloat64;
  }
  if (c10::isIntegralType(dtype, /*includeBool=*/true)) {
    return kIntegers;
  }
  return tensor.dim() == 0 ? kOtherFloats : kOtherFloats | kOtherFloatsWithDims;
}

Numbers numbers_of(const std::optional<at::Tensor>& tensor) { return tensor.has_value() ? numbers_of(*tensor) : 0; }

Numbers numbers_of(at::TensorList tensors) { return numbers_of_all(tensors); }

Numbers numbers_of(const at::ITensorListRef& tensors) { return numbers_of_all(tensors); }

Numbers numbers_of(const c10::List<std::optional<at::Tensor>>& tensors) {
  Numbers found = 0;
  for (const std::optional<at::Tensor> tensor : tensors) {
    found |= numbers_of(tensor);
  }
  return found;
}

Numbers numbers_of(std::optional<at::ScalarType> dtype) {
  return dtype.has_value() && is_float64(*dtype) ? kFloat64 : 0;
}

bool need_float64(Numbers numbers) {
  return (numbers & kFloat64) != 0 || ((numbers & kFloat64OnHost) != 0 && (numbers & kOtherFloatsWithDims) == 0) ||
      ((numbers & kIntegers) != 0 && (numbers & kOtherFloats) == 0 &&
       is_float64(c10::get_default_dtype_as_scalartype()));
}

bool needs_float64(const c10::FunctionSchema& schema, const torch::jit::Stack& stack) {
  const size_t count = schema.arguments().size();
  Numbers found = 0;
  for (size_t i = 0; i < count; ++i) {
    const c10::IValue& value = stack[stack.size() - count + i];
    if (value.isTensor()) {
      found |= numbers_of(value.toTensor());
    } else if (value.isTensorList()) {
      found |= numbers_of_all(value.toTensorVector());
    } else if (value.isOptionalTensorList()) {
      found |= numbers_of(value.toOptionalTensorList());
    } else if (value.isInt() && is_dtype(schema.arguments()[i])) {
      found |= numbers_of(std::optional<at::ScalarType>(static_cast<at::ScalarType>(value.toInt())));
    }
  }
  return need_float64(found);
}

} // namespace musa_runtime::detail
