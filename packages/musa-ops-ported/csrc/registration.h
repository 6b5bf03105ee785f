// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Helpers of the generated files that register operators.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/op_registration/adaption.h>
#include <c10/core/DeviceGuard.h>
#include <c10/musa/MUSAGuard.h>
#include <musa_runtime/op_pack.h>
#include <musa_runtime/structured_outputs.h>

#include "engines/tensor_lists.h"
#include "predicates.h"

namespace musa_ops_ported {

using DeviceGuard = c10::musa::MUSAKernelGuard;
using Pack = musa_runtime::OpPack;

inline const at::Tensor* on_device(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_privateuseone() ? &tensor : nullptr;
}
inline const at::Tensor* on_device(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() ? on_device(*tensor) : nullptr;
}
inline const at::Tensor* on_device(at::ITensorListRef tensors) {
  for (const at::Tensor& tensor : tensors) {
    if (on_device(tensor) != nullptr) {
      return &tensor;
    }
  }
  return nullptr;
}
inline const at::Tensor* on_device(at::TensorList tensors) { return on_device(at::ITensorListRef(tensors)); }
inline const at::Tensor* on_device(const c10::List<std::optional<at::Tensor>>& /*indices*/) {
  return nullptr; // the indexed tensor, which precedes the indices, determines the device
}

inline bool is_real(const at::Scalar& number) { return !number.isComplex() && !number.isBoolean(); }

// "musa" without an index means the current device.
inline std::optional<c10::Device> with_index(std::optional<c10::Device> device) {
  return device.has_value() && device->has_index() ? device : std::nullopt;
}

// The device of the first tensor on one; it becomes the current device.
template <typename... Tensors>
std::optional<c10::Device> device_of(const Tensors&... tensors) {
  const at::Tensor* found = nullptr;
  ((found == nullptr ? void(found = on_device(tensors)) : void()), ...);
  return found != nullptr ? std::optional<c10::Device>(found->device()) : std::nullopt;
}

// Pairs an operand with its name, for operators that require one device. TensorIterator checks this itself.
template <typename... Operands>
void check_same_device(const char* op, const Operands&... operands) {
  std::optional<c10::Device> common;
  (c10::impl::check_and_update_common_device(common, operands.second, op, operands.first), ...);
}
template <typename Operand>
std::pair<const char*, const Operand&> named(const char* name, const Operand& operand) {
  return {name, operand};
}

} // namespace musa_ops_ported
