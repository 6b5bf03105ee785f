// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <musa_runtime/host/host_forms.h>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/musa/MUSAGeneratorImpl.h>
#include <c10/core/impl/COW.h>
#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSAGuard.h>
#include <c10/musa/MUSAStream.h>
#include <c10/musa/MUSASyncDebugMode.h>
#include <musa_runtime/host/aliases.h>
#include <musa_runtime/host/fallback.h>
#include <musa_runtime/host/host_seed.h>
#include <transfer/storage.h>
#include <transfer/strided.h>

#include <mutex>

namespace musa_runtime {
namespace {

using c10::DeviceType;
using c10::DispatchKey;
using c10::DispatchKeySet;

bool is_dense_musa(const c10::TensorImpl* impl) {
  return impl->key_set().has_all(DispatchKeySet(DispatchKey::PrivateUse1));
}

c10::Storage shared(c10::StorageImpl* storage) {
  return c10::Storage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage));
}

// A zero tensor, which has no memory, or a tensor without elements.
bool has_no_memory(const c10::StorageImpl* storage) { return storage->data_ptr().get() == nullptr; }

at::Tensor without_memory(at::Tensor result, c10::Device target) {
  c10::StorageImpl* const storage = result.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(c10::DataPtr(nullptr, target));
  storage->set_allocator(c10::musa::MUSACachingAllocator::get());
  return on_device(std::move(result), shared(storage), target);
}

} // namespace

at::Tensor on_device(at::Tensor result, c10::Storage storage, c10::Device target) {
  c10::TensorImpl* const impl = result.unsafeGetTensorImpl();
  impl->_change_backend_component_keys(target);
  impl->set_storage_keep_dtype(std::move(storage));
  return result;
}

// ---- HostForms

HostForms::~HostForms() {
  if (restore_device_ >= 0) {
    c10::musa::restore_device(restore_device_);
  }
}

at::Device HostForms::target() const {
  return at::Device(DeviceType::PrivateUse1, index_ >= 0 ? index_ : c10::musa::current_device());
}

void HostForms::note_device(at::Device device) {
  if (index_ < 0) {
    index_ = device.index();
  } else if (C10_UNLIKELY(index_ != device.index())) {
    TORCH_CHECK(
        false, "Expected all tensors to be on the same device, but found at least two devices, musa:",
        static_cast<int>(index_), " and ", device, "!");
  }
}

at::Tensor HostForms::converted(const at::Tensor& tensor, HostTensor rule, Access access) {
  if (C10_UNLIKELY(!tensor.defined())) {
    return tensor;
  }
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (C10_LIKELY(is_dense_musa(impl) && is_plain(impl))) {
    note_device(impl->device());
    for (size_t i = 0; i < seen_count_; ++i) {
      if (C10_UNLIKELY(seen_[i].argument == impl)) {
        return at::Tensor(c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(seen_[i].host));
      }
    }
    return dense_on_host(tensor, access);
  }
  if (tensor.device().type() != DeviceType::PrivateUse1) {
    host_tensors_.admit(tensor, rule, target());
    return tensor;
  }
  note_device(tensor.device());
  remembers_ = false;
  at::Tensor made = layout_on_host(tensor, access);
  remembers_ = true;
  return made;
}

std::vector<at::Tensor> HostForms::host(at::TensorList tensors, HostTensor rule) {
  std::vector<at::Tensor> result;
  result.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    result.push_back(host(tensor, rule));
  }
  return result;
}

std::vector<at::Tensor> HostForms::host(const at::ITensorListRef& tensors, HostTensor rule) {
  std::vector<at::Tensor> result;
  result.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    result.push_back(host(tensor, rule));
  }
  return result;
}

c10::List<std::optional<at::Tensor>> HostForms::host(
    const c10::List<std::optional<at::Tensor>>& tensors, HostTensor rule) {
  c10::List<std::optional<at::Tensor>> result;
  result.reserve(tensors.size());
  for (const std::optional<at::Tensor>& tensor : tensors) {
    result.push_back(host(tensor, rule));
  }
  return result;
}

std::vector<at::Tensor> HostForms::host_written(at::TensorList tensors, HostTensor rule) {
  std::vector<at::Tensor> result;
  result.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    result.push_back(host_written(tensor, rule));
  }
  return result;
}

std::optional<at::Device> HostForms::host(std::optional<at::Device> device) {
  if (!device.has_value()) {
    return at::Device(DeviceType::CPU);
  }
  return host(*device);
}

at::Device HostForms::host(at::Device device) {
  if (device.type() != DeviceType::PrivateUse1) {
    return device;
  }
  if (device.has_index()) {
    note_device(device);
  }
  return at::Device(DeviceType::CPU);
}

std::optional<at::Generator> HostForms::host(const std::optional<at::Generator>& generator) {
  at::Generator source = generator.has_value() && generator->defined()
      ? *generator
      : at::musa::detail::getDefaultMUSAGenerator(target().index());
  TORCH_CHECK(
      source.device().type() == DeviceType::PrivateUse1, "Expected a 'musa' device type for generator but found '",
      source.device().type(), "'");
  uint64_t seed = 0;
  uint64_t offset = 0;
  {
    std::lock_guard<std::mutex> lock(source.mutex());
    std::tie(seed, offset) = at::check_generator<at::MUSAGeneratorImpl>(source)->philox_engine_inputs(kDrawnPerCall);
  }
  return at::make_generator<at::CPUGeneratorImpl>(host_seed(seed, offset));
}

void HostForms::enter() {
  const c10::DeviceIndex current = c10::musa::current_device();
  if (index_ < 0) {
    index_ = current;
  } else if (C10_UNLIKELY(current != index_)) {
    restore_device_ = c10::musa::ExchangeDevice(index_); // not set_device(), which records a choice of the program
  }
  exclude_.emplace(excluded_from_host_kernels());
}

at::Tensor HostForms::device(at::Tensor result) {
  if (C10_UNLIKELY(!result.defined() || result.device().type() != DeviceType::CPU)) {
    return result; // a tensor on the meta device, or already on the musa device
  }
  if (C10_UNLIKELY(!is_plain(result.unsafeGetTensorImpl()))) {
    return layout_on_device(result);
  }
  return dense_on_device(std::move(result));
}

std::vector<at::Tensor> HostForms::device(std::vector<at::Tensor> results) {
  for (at::Tensor& result : results) {
    result = device(std::move(result));
  }
  return results;
}

at::Tensor HostForms::copied_to_device(const at::Tensor& result) {
  copied_bytes_ += result.numel() * result.itemsize();
  return at::musa::to_musa(result, target());
}

void HostForms::write_back(const at::Tensor& original, const at::Tensor& host) {
  if (!original.defined() || original.device().type() != DeviceType::PrivateUse1) {
    return;
  }
  if (C10_LIKELY(is_plain(original.unsafeGetTensorImpl()))) {
    write_back_dense(original, host);
  } else {
    write_back_layout(original, host);
  }
}

// ---- HostCopies

at::Tensor HostCopies::dense_on_host(const at::Tensor& tensor, Access /*access*/) {
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  for (size_t i = 0; i < seen_count_; ++i) {
    // One view passed twice, as two tensors: kernels that refuse to write to their inputs must detect it.
    const c10::TensorImpl* other = seen_[i].argument;
    if (is_dense_musa(other) && other->unsafe_storage().is_alias_of(impl->unsafe_storage()) &&
        other->storage_offset() == impl->storage_offset() && other->sizes() == impl->sizes() &&
        other->strides() == impl->strides() && other->dtype() == impl->dtype()) {
      return remember(
          tensor,
          at::Tensor(
              seen_[i].host->shallow_copy_and_detach(
                  /*version_counter=*/0, /*allow_tensor_metadata_change=*/true)));
    }
  }
  copied_bytes_ += tensor.numel() * tensor.itemsize();
  c10::musa::check_sync("an operator that is computed on copies in host memory");
  return remember(tensor, at::musa::to_cpu(tensor));
}

at::Tensor HostCopies::dense_on_device(at::Tensor result) {
  return result._is_zerotensor() ? without_memory(std::move(result), target()) : copied_to_device(result);
}

void HostCopies::write_back_dense(const at::Tensor& original, const at::Tensor& host) {
  copied_bytes_ += host.numel() * host.itemsize();
  if (original.sizes() != host.sizes() || original.strides() != host.strides()) {
    at::musa::restride(original, host.sizes(), host.strides());
  }
  at::musa::write_elements(original, host);
}

// ---- HostAliases

at::Tensor HostAliases::dense_on_host(const at::Tensor& tensor, Access access) {
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  c10::StorageImpl* original = impl->unsafe_storage().unsafeGetStorageImpl();
  if (access == Access::Write && C10_UNLIKELY(c10::impl::cow::is_cow_data_ptr(original->data_ptr()))) {
    (void)original->mutable_data(); // a lazy clone gets its own memory before a kernel may write to it
  }
  for (size_t i = 0; i < seen_count_; ++i) {
    c10::StorageImpl* storage = seen_[i].host->unsafe_storage().unsafeGetStorageImpl();
    if (original_of(storage) == original) {
      return remember(tensor, at::Tensor(c10::make_intrusive<AliasImpl>(impl, shared(storage))));
    }
  }
  return remember(tensor, at::Tensor(c10::make_intrusive<AliasImpl>(impl, alias_storage(original))));
}

at::Tensor HostAliases::dense_on_device(at::Tensor result) {
  c10::StorageImpl* const storage = result.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  if (is_alias(storage)) {
    return on_device(std::move(result), shared(original_of(storage)), target());
  }
  return has_no_memory(storage) ? without_memory(std::move(result), target()) : copied_to_device(result);
}

void HostAliases::write_back_dense(const at::Tensor& original, const at::Tensor& host) {
  c10::TensorImpl* impl = original.unsafeGetTensorImpl();
  c10::StorageImpl* before = impl->unsafe_storage().unsafeGetStorageImpl();
  c10::StorageImpl* after = host.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  if (!is_alias(after)) {
    impl->set_storage_keep_dtype(device(host).storage());
  } else if (original_of(after) != before) {
    impl->set_storage_keep_dtype(shared(original_of(after))); // it shares another argument's memory now (set_)
  }
  impl->set_sizes_and_strides(host.sizes(), host.strides(), host.storage_offset());
}

} // namespace musa_runtime
