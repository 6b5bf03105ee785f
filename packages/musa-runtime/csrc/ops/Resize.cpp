// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <c10/musa/MUSACachingAllocator.h>
#include <torch/library.h>
#include <transfer/storage.h>

#include <algorithm>

namespace at::musa {
namespace {

const Tensor& resize_(const Tensor& self, SymIntArrayRef symbolic_size, std::optional<MemoryFormat> format) {
  const IntArrayRef size = C10_AS_INTARRAYREF_SLOW(symbolic_size);
  TORCH_CHECK(
      !self.requires_grad() || !GradMode::is_enabled() || self.sizes() == size,
      "cannot resize variables that require grad");
  // Everything that may raise comes before the first change.
  at::detail::check_size_nonnegative(size);
  if (format.has_value()) {
    TORCH_CHECK(*format != MemoryFormat::Preserve, "Unsupported memory format ", *format);
    TORCH_CHECK(
        *format != MemoryFormat::ChannelsLast || size.size() == 4,
        "required rank 4 tensor to use channels_last format");
    TORCH_CHECK(
        *format != MemoryFormat::ChannelsLast3d || size.size() == 5,
        "required rank 5 tensor to use channels_last_3d format");
  }
  const size_t before = self.storage().nbytes();
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  if (impl->sizes() != size) {
    const bool empty = std::find(size.begin(), size.end(), 0) != size.end();
    ensure_storage(
        impl, empty ? 0 : at::detail::computeStorageNbytesContiguous(size, self.itemsize(), self.storage_offset()));
    impl->set_sizes_contiguous(size);
  }
  if (format.has_value()) {
    impl->empty_tensor_restride(*format);
  }
  if (C10_UNLIKELY(
          at::globalContext().deterministicAlgorithms() &&
          at::globalContext().deterministicFillUninitializedMemory())) {
    at::native::fill_resize_deterministic_(self, static_cast<int64_t>(before));
  }
  return self;
}

Tensor& set_source_storage_offset(
    Tensor& result, Storage storage, int64_t offset, IntArrayRef size, IntArrayRef stride) {
  at::native::checkSetStorage(result, std::move(storage), offset, size, stride);
  c10::TensorImpl* impl = result.unsafeGetTensorImpl();
  impl->set_storage_offset(offset);
  if (stride.data() != nullptr) {
    impl->set_sizes_and_strides(size, stride);
  } else {
    impl->set_sizes_contiguous(size);
  }
  ensure_storage(impl, at::detail::computeStorageNbytes(result.sizes(), result.strides(), result.itemsize(), offset));
  return result;
}

Tensor& set_source_storage(Tensor& result, Storage storage) {
  const auto elements = static_cast<int64_t>(storage.nbytes() / result.dtype().itemsize());
  return set_source_storage_offset(result, std::move(storage), 0, {elements}, {});
}

Tensor& set_source_tensor(Tensor& result, const Tensor& source) {
  if (!result.is_same(source)) {
    set_source_storage_offset(result, source.storage(), source.storage_offset(), source.sizes(), source.strides());
  }
  return result;
}

Tensor& set_(Tensor& result) {
  c10::Storage storage(c10::Storage::use_byte_size_t(), 0, c10::musa::MUSACachingAllocator::get(), /*resizable=*/true);
  storage.set_data_ptr_noswap(c10::DataPtr(nullptr, result.device()));
  return set_source_storage_offset(result, std::move(storage), 0, {0}, {});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("resize_", TORCH_FN(resize_));
  m.impl("set_", TORCH_FN(set_));
  m.impl("set_.source_Storage", TORCH_FN(set_source_storage));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_source_storage_offset));
  m.impl("set_.source_Tensor", TORCH_FN(set_source_tensor));
}

} // namespace
} // namespace at::musa
