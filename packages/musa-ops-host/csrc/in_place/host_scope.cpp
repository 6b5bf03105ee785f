// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "host_scope.h"

#include "cpu_allocations.h"

#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSAStream.h>
#include <musa_runtime/kernel_trace.h>

#include <utility>

namespace musa_ops_host {
namespace {

using musa_runtime::AliasImpl;
using musa_runtime::is_alias;

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

} // namespace

HostScope::~HostScope() {
  if (entered_) {
    if (C10_UNLIKELY(traced_from_ != 0)) {
      musa_runtime::end_traced_kernel(traced_from_, counter_, name_, index_);
    }
    cpu_allocations = redirected_before_ ? CpuMemory::Device : CpuMemory::Host;
  }
}

void HostScope::enter() {
  HostForms::enter();
  install_scoped_cpu_allocator();
  redirected_before_ = cpu_allocations == CpuMemory::Device;
  entered_ = true;
  c10::musa::wait_for_host_access(c10::musa::current_stream_handle(index_));
  cpu_allocations = results_on_host_ ? CpuMemory::Host : CpuMemory::Device;
  if (C10_UNLIKELY(musa_runtime::kernel_tracing())) {
    traced_from_ = musa_runtime::begin_traced_kernel();
  }
}

at::Tensor HostScope::dense_on_device(at::Tensor result) {
  c10::StorageImpl* const storage = result.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  if (C10_LIKELY(storage->device().type() == c10::DeviceType::CPU)) {
    if (is_alias(storage) || !is_from_scope(storage)) {
      // A view of an argument, or memory of another library, a packed weight or a constant, which is copied. The copy must be
      // allocated as the device's.
      const CpuMemory before = std::exchange(cpu_allocations, CpuMemory::Host);
      result = HostAliases::dense_on_device(std::move(result));
      cpu_allocations = before;
      return result;
    }
    storage->set_data_ptr_noswap(relabelled(storage, target()));
    storage->set_allocator(c10::musa::MUSACachingAllocator::get());
  }
  // Another result may have been relabelled over this storage.
  return musa_runtime::on_device(
      std::move(result), c10::Storage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage)), target());
}

void HostScope::write_back_dense(const at::Tensor& original, const at::Tensor& host) {
  c10::TensorImpl* impl = original.unsafeGetTensorImpl();
  c10::StorageImpl* after = host.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  const auto* alias = dynamic_cast<const AliasImpl*>(host.unsafeGetTensorImpl());
  if (is_alias(after) || alias == nullptr || alias->made_with != after || !is_from_scope(after)) {
    HostAliases::write_back_dense(original, host);
    return;
  }
  // Resized in place: all tensors on this storage use the new memory.
  c10::StorageImpl* before = impl->unsafe_storage().unsafeGetStorageImpl();
  before->set_data_ptr_noswap(relabelled(after, before->device()));
  before->set_nbytes(after->nbytes());
  impl->set_sizes_and_strides(host.sizes(), host.strides(), host.storage_offset());
}

} // namespace musa_ops_host
