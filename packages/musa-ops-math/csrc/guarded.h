// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/IListRef.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>

#include <optional>
#include <utility>

namespace musa_ops_math {

/// A function of torch with the device of its arguments as the current one, as in torch's own registrations: a device argument, or
/// that of the first tensor. Some functions create tensors on the current device.
template <auto function>
struct Guarded;
template <typename Return, typename... Args, Return (*function)(Args...)>
struct Guarded<function> {
  static Return call(Args... args) {
    std::optional<c10::Device> given, first;
    (look(args, given, first), ...);
    const c10::OptionalDeviceGuard guard(given.has_value() ? given : first);
    return function(std::forward<Args>(args)...);
  }

 private:
  using Device = std::optional<c10::Device>;

  template <typename T>
  static void look(const T& /*argument*/, Device& /*given*/, Device& /*first*/) {}
  static void look(const Device& device, Device& given, Device& /*first*/) {
    if (device.has_value() && device->is_privateuseone()) {
      given = device;
    }
  }
  static void look(const at::Tensor& tensor, Device& /*given*/, Device& first) {
    if (!first.has_value() && tensor.defined() && tensor.is_privateuseone()) {
      first = tensor.device();
    }
  }
  static void look(const std::optional<at::Tensor>& tensor, Device& given, Device& first) {
    if (tensor.has_value()) {
      look(*tensor, given, first);
    }
  }
  static void look(const at::TensorList& tensors, Device& given, Device& first) {
    for (const at::Tensor& tensor : tensors) {
      look(tensor, given, first);
    }
  }
  static void look(const at::ITensorListRef& tensors, Device& given, Device& first) {
    for (const at::Tensor& tensor : tensors) {
      look(tensor, given, first);
    }
  }
};

} // namespace musa_ops_math
