// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/musa/EmptyTensor.h>

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/TensorFactories.h>
#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSAFunctions.h>

namespace at::detail {
namespace {

constexpr c10::DispatchKeySet kMusa(c10::DispatchKey::PrivateUse1);

// Every musa tensor is created here, also in C++ programs that never run torch.musa's Python initialisation.
c10::Allocator* allocator_of(c10::DeviceIndex device) {
  at::globalContext().lazyInitDevice(c10::DeviceType::PrivateUse1);
  const c10::DeviceIndex index = c10::musa::resolve_device_index(device);
  c10::musa::check_device_index(index);
  return c10::musa::MUSACachingAllocator::on(index);
}

TensorBase filled_if_deterministic(TensorBase tensor) {
  if (C10_UNLIKELY(
          at::globalContext().deterministicAlgorithms() &&
          at::globalContext().deterministicFillUninitializedMemory())) {
    Tensor filled(tensor);
    at::native::fill_empty_deterministic_(filled);
  }
  return tensor;
}

} // namespace

TensorBase empty_musa(IntArrayRef size, ScalarType dtype, c10::DeviceIndex device, std::optional<MemoryFormat> format) {
  return filled_if_deterministic(empty_generic(size, allocator_of(device), kMusa, dtype, format));
}

TensorBase empty_strided_musa(IntArrayRef size, IntArrayRef stride, ScalarType dtype, c10::DeviceIndex device) {
  return filled_if_deterministic(empty_strided_generic(size, stride, allocator_of(device), kMusa, dtype));
}

} // namespace at::detail
