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
  c10::DataPtr fresh =
      nbytes == 0 ? c10::DataPtr(nullptr, device) : c10::musa::MUSACachingAllocator::get()->allocate(nbytes);
  const size_t kept = std::min(before, nbytes);
  if (kept != 0) {
    C10_MUSA_CHECK(musaMemcpyAsync(
        fresh.get(), storage->data(), kept, musaMemcpyDeviceToDevice,
        c10::musa::getCurrentMUSAStream(device.index()).stream()));
  }
  storage->set_data_ptr_noswap(std::move(fresh));
  storage->set_nbytes(nbytes);
}

void ensure_storage(c10::TensorImpl* impl, size_t nbytes) {
  if (nbytes == 0) {
    return;
  }
  const c10::Storage& storage = impl->unsafe_storage();
  TORCH_CHECK(storage, "Tensor: invalid null storage");
  if (nbytes > storage.nbytes()) {
    resize_storage(storage.unsafeGetStorageImpl(), nbytes);
  }
}

void restride(const Tensor& tensor, IntArrayRef size, IntArrayRef stride) {
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  ensure_storage(impl, at::detail::computeStorageNbytes(size, stride, tensor.itemsize(), tensor.storage_offset()));
  impl->set_sizes_and_strides(size, stride);
}

} // namespace at::musa
