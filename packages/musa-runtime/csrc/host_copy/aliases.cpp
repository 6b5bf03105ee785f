// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <musa_runtime/host/aliases.h>

#include <c10/core/CPUAllocator.h>
#include <transfer/storage.h>

namespace musa_runtime {

using c10::DeviceType;

void release_original(void* original) { c10::raw::intrusive_ptr::decref(static_cast<c10::StorageImpl*>(original)); }

c10::Storage alias_storage(c10::StorageImpl* original) {
  c10::raw::intrusive_ptr::incref(original);
  return c10::Storage(
      c10::make_intrusive<c10::StorageImpl>(
          c10::StorageImpl::use_byte_size_t(), original->nbytes(),
          c10::DataPtr(
              original->_mutable_data_ptr_no_checks().get(), original, &release_original, c10::Device(DeviceType::CPU)),
          c10::GetCPUAllocator(), original->resizable()));
}

void restride(const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides) {
  at::musa::restride(tensor, sizes, strides);
}

AliasImpl::AliasImpl(c10::TensorImpl* source, c10::Storage storage)
    : c10::TensorImpl(
          c10::TensorImpl::VIEW, c10::Storage(source->unsafe_storage()), source->key_set(), source->dtype()) {
  copy_tensor_metadata(source, this, c10::VariableVersion(source->version_counter()), true);
  storage_ = std::move(storage);
  made_with = storage_.unsafeGetStorageImpl();
  _change_backend_component_keys(c10::Device(DeviceType::CPU));
  device_opt_ = c10::Device(DeviceType::CPU);
}

} // namespace musa_runtime
