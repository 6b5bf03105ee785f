// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <host_kernels/host_scope.h>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/musa/MUSAGeneratorImpl.h>
#include <c10/core/impl/COW.h>
#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSACapabilities.h>
#include <c10/musa/MUSAGuard.h>
#include <c10/musa/MUSAStream.h>
#include <c10/musa/MUSASyncDebugMode.h>
#include <host_kernels/aliases.h>
#include <host_kernels/cpu_allocations.h>
#include <host_kernels/host_seed.h>
#include <host_kernels/kernel_trace.h>
#include <transfer/storage.h>
#include <transfer/strided.h>

#include <mutex>
#include <optional>
#include <utility>

namespace musa_runtime {
namespace {

using c10::DeviceType;
using c10::DispatchKey;
using c10::DispatchKeySet;

// Labels memory that a scope allocated as the device's: same bytes, other label.
c10::DataPtr relabelled(c10::StorageImpl* storage, c10::Device device) {
  c10::DataPtr& data = storage->_mutable_data_ptr_no_checks();
  const c10::DeleterFnPtr deleter = data.get_deleter();
  void* pointer = data.get();
  return c10::DataPtr(pointer, data.release_context(), deleter, device);
}

bool is_from_scope(const c10::StorageImpl* storage) {
  const c10::DataPtr& data = storage->data_ptr();
  return data.get_deleter() == c10::musa::MUSACachingAllocator::deleter() || data.get() == nullptr;
}

bool is_dense_musa(const c10::TensorImpl* impl) {
  return impl->key_set().has_all(DispatchKeySet(DispatchKey::PrivateUse1));
}

bool is_dense_cpu(const c10::TensorImpl* impl) { return impl->key_set().has_all(DispatchKeySet(DispatchKey::CPU)); }

} // namespace

HostScope::HostScope() : mode_(c10::musa::host_addressable() ? Mode::Alias : Mode::Copy) {}

HostScope::~HostScope() {
  if (entered_) {
    if (C10_UNLIKELY(traced_from_ != 0)) {
      end_traced_kernel(traced_from_, counter_, name_, index_);
    }
    cpu_allocations = redirected_before_ ? CpuMemory::Device : CpuMemory::Host;
    if (restore_device_ >= 0) {
      c10::musa::restore_device(restore_device_);
    }
  }
}

at::Device HostScope::target() const {
  return at::Device(DeviceType::PrivateUse1, index_ >= 0 ? index_ : c10::musa::current_device());
}

void HostScope::note_device(at::Device device) {
  if (index_ < 0) {
    index_ = device.index();
  } else if (C10_UNLIKELY(index_ != device.index())) {
    TORCH_CHECK(
        false, "Expected all tensors to be on the same device, but found at least two devices, musa:",
        static_cast<int>(index_), " and ", device, "!");
  }
}

at::Tensor HostScope::alias_dense(const at::Tensor& tensor, Access access) {
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  c10::StorageImpl* original = impl->unsafe_storage().unsafeGetStorageImpl();
  if (access == Access::Write && C10_UNLIKELY(c10::impl::cow::is_cow_data_ptr(original->data_ptr()))) {
    (void)original->mutable_data(); // a lazy clone gets its own memory before a kernel may write to it
  }
  for (size_t i = 0; i < seen_count_; ++i) {
    c10::StorageImpl* storage = seen_[i].host->unsafe_storage().unsafeGetStorageImpl();
    if (original_of(storage) == original) {
      return remember(
          tensor,
          at::Tensor(
              c10::make_intrusive<AliasImpl>(
                  impl, c10::Storage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage)))));
    }
  }
  return remember(tensor, at::Tensor(c10::make_intrusive<AliasImpl>(impl, alias_storage(original))));
}

at::Tensor HostScope::copy_dense(const at::Tensor& tensor) {
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

at::Tensor HostScope::converted(const at::Tensor& tensor, HostTensor rule, Access access) {
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
    return mode_ == Mode::Alias ? alias_dense(tensor, access) : copy_dense(tensor);
  }
  return converted_slow(tensor, rule, access);
}

at::Tensor HostScope::converted_slow(const at::Tensor& tensor, HostTensor rule, Access access) {
  if (tensor.device().type() != DeviceType::PrivateUse1) {
    host_tensors_.admit(tensor, rule, target());
    return tensor;
  }
  note_device(tensor.device());
  return layout_on_host(tensor, access);
}

std::vector<at::Tensor> HostScope::host(at::TensorList tensors, HostTensor rule) {
  std::vector<at::Tensor> result;
  result.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    result.push_back(host(tensor, rule));
  }
  return result;
}

std::vector<at::Tensor> HostScope::host(const at::ITensorListRef& tensors, HostTensor rule) {
  std::vector<at::Tensor> result;
  result.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    result.push_back(host(tensor, rule));
  }
  return result;
}

c10::List<std::optional<at::Tensor>> HostScope::host(
    const c10::List<std::optional<at::Tensor>>& tensors, HostTensor rule) {
  c10::List<std::optional<at::Tensor>> result;
  result.reserve(tensors.size());
  for (const std::optional<at::Tensor>& tensor : tensors) {
    result.push_back(host(tensor, rule));
  }
  return result;
}

std::vector<at::Tensor> HostScope::host_written(at::TensorList tensors, HostTensor rule) {
  std::vector<at::Tensor> result;
  result.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    result.push_back(host_written(tensor, rule));
  }
  return result;
}

std::optional<at::Device> HostScope::host(std::optional<at::Device> device) {
  if (!device.has_value()) {
    return at::Device(DeviceType::CPU);
  }
  return host(*device);
}

at::Device HostScope::host(at::Device device) {
  if (device.type() != DeviceType::PrivateUse1) {
    return device;
  }
  if (device.has_index()) {
    note_device(device);
  }
  return at::Device(DeviceType::CPU);
}

std::optional<at::Generator> HostScope::host(const std::optional<at::Generator>& generator) {
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

void HostScope::enter() {
  const c10::DeviceIndex current = c10::musa::current_device();
  if (index_ < 0) {
    index_ = current;
  } else if (C10_UNLIKELY(current != index_)) {
    restore_device_ = c10::musa::ExchangeDevice(index_); // not set_device(), which records a choice of the program
  }
  redirected_before_ = cpu_allocations == CpuMemory::Device;
  entered_ = true;
  c10::musa::wait_for_host_access(c10::musa::current_stream_handle(index_));
  exclude_.emplace(excluded_from_host_kernels());
  cpu_allocations = redirects_ && mode_ == Mode::Alias ? CpuMemory::Device : CpuMemory::Host;
  if (C10_UNLIKELY(kernel_tracing()) && mode_ == Mode::Alias) {
    traced_from_ = begin_traced_kernel();
  }
}

at::Tensor HostScope::device(at::Tensor result) {
  if (C10_UNLIKELY(!result.defined())) {
    return result;
  }
  c10::TensorImpl* impl = result.unsafeGetTensorImpl();
  // A zero tensor has no memory to copy: it is only re-labelled, in either mode.
  const bool has_memory_elsewhere = mode_ != Mode::Alias && !result._is_zerotensor();
  if (C10_UNLIKELY(has_memory_elsewhere || !is_dense_cpu(impl) || !is_plain(impl))) {
    return device_slow(std::move(result));
  }
  const c10::Device target(DeviceType::PrivateUse1, index_);
  c10::Storage storage = impl->unsafe_storage();
  c10::StorageImpl* storage_impl = storage.unsafeGetStorageImpl();
  if (storage_impl->device().type() == DeviceType::CPU) {
    if (is_alias(storage_impl)) {
      // A view of an argument, or the argument itself.
      storage = c10::Storage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(original_of(storage_impl)));
    } else if (C10_LIKELY(is_from_scope(storage_impl))) {
      storage_impl->set_data_ptr_noswap(relabelled(storage_impl, target));
      storage_impl->set_allocator(c10::musa::MUSACachingAllocator::get());
    } else {
      return device_slow(std::move(result));
    }
  }
  impl->_change_backend_component_keys(target);
  impl->set_storage_keep_dtype(std::move(storage));
  return result;
}

std::vector<at::Tensor> HostScope::device(std::vector<at::Tensor> results) {
  for (at::Tensor& result : results) {
    result = device(std::move(result));
  }
  return results;
}

at::Tensor HostScope::device_slow(at::Tensor result) {
  if (result.device().type() != DeviceType::CPU) {
    return result; // meta, or already a musa tensor
  }
  const c10::TensorImpl* impl = result.unsafeGetTensorImpl();
  if (!is_plain(impl)) {
    return layout_on_device(result);
  }
  // The kernel's result is in other memory (a constant, a packed weight, another library's buffer), or the device's memory
  // is discrete: copy. The copy must be allocated as the device's.
  const CpuMemory before = std::exchange(cpu_allocations, CpuMemory::Host);
  copied_bytes_ += result.numel() * result.itemsize();
  at::Tensor copied = at::musa::to_musa(result, target());
  cpu_allocations = before;
  return copied;
}

bool HostScope::shows_memory_of(const c10::TensorImpl* host, const c10::TensorImpl* original) {
  const c10::StorageImpl* storage = host->unsafe_storage().unsafeGetStorageImpl();
  return is_alias(storage) && original_of(storage) == original->unsafe_storage().unsafeGetStorageImpl();
}

void HostScope::write_back_slow(const at::Tensor& original, const at::Tensor& host) {
  if (!original.defined() || original.device().type() != DeviceType::PrivateUse1) {
    return;
  }
  if (!is_plain(original.unsafeGetTensorImpl())) {
    write_back_layout(original, host);
    return;
  }
  c10::TensorImpl* impl = original.unsafeGetTensorImpl();
  if (mode_ == Mode::Alias) {
    c10::StorageImpl* before = impl->unsafe_storage().unsafeGetStorageImpl();
    c10::StorageImpl* after = host.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
    const auto* alias = dynamic_cast<const AliasImpl*>(host.unsafeGetTensorImpl());
    if (is_alias(after)) {
      if (original_of(after) != before) {
        // The kernel made it share another argument's memory (set_).
        impl->set_storage_keep_dtype(
            c10::Storage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(original_of(after))));
      }
    } else if (alias != nullptr && alias->made_with == after && is_from_scope(after)) {
      // Resized in place: all tensors on this storage use the new memory.
      before->set_data_ptr_noswap(relabelled(after, before->device()));
      before->set_nbytes(after->nbytes());
    } else {
      impl->set_storage_keep_dtype(device(host).storage());
    }
    impl->set_sizes_and_strides(host.sizes(), host.strides(), host.storage_offset());
    return;
  }
  copied_bytes_ += host.numel() * host.itemsize();
  if (original.sizes() != host.sizes() || original.strides() != host.strides()) {
    at::musa::restride(original, host.sizes(), host.strides());
  }
  at::musa::write_elements(original, host);
}

} // namespace musa_runtime
