// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <transfer/storage.h>

#include <ATen/EmptyTensor.h>
#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSAGuard.h>

namespace at::musa {

void resize_storage(c10::StorageImpl* storage, size_t nbytes) {
  TORCH_CHECK(storage->resizable(), "Trying to resize storage that is not resizable");
  const Device device = storage->device();
  c10::musa::MUSAGuard guard(device);
  const size_t before = storage->nbytes();
  c10::DataPtr fresh = nbytes == 0 ? c10::DataPtr(nullptr, device) : c10::musa::MUSACachingAllocator::get()->allocate(nbytes);
  const size_t kept = std::min(before, nbytes);
  if (kept != 0) {
    C10_MUSA_CHECK(musaMemcpyAsync(
        fresh.get(), storage->data(), kept, musaMemcpyDeviceToDevice,
        c10::musa::getCurrentMUSAStream(device.index()).stream()));
  }
  storage->set_data_ptr_noswap(std::move(fresh));
  storage->set_nbytes(nbytes);
}

void ensure_storage(c10::TensorImpl* impl) {
  if (impl->numel() == 0) {
    return; // no elements, whatever the offset
  }
  const size_t needed = at::detail::computeStorageNbytes(
      impl->sizes(), impl->strides(), impl->dtype().itemsize(), impl->storage_offset());
  const c10::Storage& storage = impl->unsafe_storage();
  TORCH_CHECK(storage, "Tensor: invalid null storage");
  if (needed > storage.nbytes()) {
    resize_storage(storage.unsafeGetStorageImpl(), needed);
  }
}

void restride(const Tensor& tensor, IntArrayRef size, IntArrayRef stride) {
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(size, stride);
  ensure_storage(impl);
}

} // namespace at::musa
