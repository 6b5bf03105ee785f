// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/musa/EmptyTensor.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/range.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <c10/musa/MUSACachingAllocator.h>
#include <torch/library.h>

// Allocation and metadata: the operators by which all others allocate memory.

namespace at::musa {
namespace {

// The device that the options name; raises for options that musa tensors do not support.
DeviceIndex requested(std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin_memory) {
  TORCH_CHECK(layout_or_default(layout) == kStrided, "musa tensors of layout ", *layout, " are not made by empty()");
  TORCH_CHECK(!pinned_memory_or_default(pin_memory), "Only dense CPU tensors can be pinned");
  const Device target = device_or_default(device);
  TORCH_INTERNAL_ASSERT(target.type() == c10::DeviceType::PrivateUse1);
  return target.index();
}

Tensor empty_memory_format(
    IntArrayRef size, std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device> device,
    std::optional<bool> pin_memory, std::optional<MemoryFormat> format) {
  return at::detail::empty_musa(size, dtype_or_default(dtype), requested(layout, device, pin_memory), format);
}

Tensor empty_strided(
    IntArrayRef size, IntArrayRef stride, std::optional<ScalarType> dtype, std::optional<Layout> layout,
    std::optional<Device> device, std::optional<bool> pin_memory) {
  return at::detail::empty_strided_musa(size, stride, dtype_or_default(dtype), requested(layout, device, pin_memory));
}

// Module.to() keeps its Parameters, and `p.data = musa_tensor` works, only if strided CPU and musa tensors may exchange
// their implementations; by default torch does not allow this for renamed backends.
bool has_compatible_shallow_copy_type(const Tensor& self, const Tensor& from) {
  const auto plain = [](const Tensor& tensor) {
    return tensor.layout() == kStrided && !tensor.is_quantized() && !tensor.is_nested();
  };
  return (plain(self) && plain(from)) || self.unsafeGetTensorImpl()->has_compatible_shallow_copy_type(from.key_set());
}

void record_stream(Tensor& self, Stream stream) {
  c10::musa::MUSACachingAllocator::recordStream(self.storage().data_ptr(), c10::musa::MUSAStream(stream));
}

// torch's kernel of this overload, for every device, calls the CPU's kernel, which would access device memory on the host.
Tensor& range_out_without_step(const Scalar& start, const Scalar& end, Tensor& out) {
  return at::range_out(out, start, end, /*step=*/1);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(empty_memory_format));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("_has_compatible_shallow_copy_type", TORCH_FN(has_compatible_shallow_copy_type));
  m.impl("record_stream", TORCH_FN(record_stream));
  m.impl("range.out_", TORCH_FN(range_out_without_step));
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("unfold", TORCH_FN(at::native::unfold));
  m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
}

// An operator without autocast rules runs under autocast as it does outside; torch has no such default for renamed backends
// and would refuse every operator. The amp pack adds the rules.
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

// Called for any pair of tensors of which one is sparse; returns torch's own result.
TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  m.impl("_has_compatible_shallow_copy_type", TORCH_FN(has_compatible_shallow_copy_type));
}

} // namespace
} // namespace at::musa
