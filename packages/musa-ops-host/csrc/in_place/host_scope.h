// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <musa_runtime/host/aliases.h>
#include <musa_runtime/host/host_forms.h>

#include <atomic>

// Runs torch's CPU kernels in the memory of musa tensors. A kernel wrapper reads:
//
//   HostScope scope(calls[0]);
//   at::Tensor a = scope.host(self);          // a CPU tensor over the memory of the musa tensor
//   scope.enter();                            // waits for earlier work; allocations are then device memory
//   return scope.device(at::cpu::relu(a));    // the result, which was allocated in device memory, as a musa tensor

namespace musa_ops_host {

using musa_runtime::HostTensor;

class HostScope final : public musa_runtime::HostAliases {
 public:
  HostScope() = default;
  explicit HostScope(std::atomic<uint64_t>& calls) : counter_(&calls) { calls.fetch_add(1, std::memory_order_relaxed); }
  ~HostScope() override;

  void enter() override;
  // The kernel's name in the profile if no counter identifies the operator; the text must outlive the scope.
  void set_name(const char* name) { name_ = name; }

  using HostForms::write_back;
  void write_back(const at::Tensor& original, const at::Tensor& host) {
    if (C10_LIKELY(original.defined() && is_unchanged(original.unsafeGetTensorImpl(), host.unsafeGetTensorImpl()))) {
      return;
    }
    HostForms::write_back(original, host);
  }

 private:
  static bool is_unchanged(const c10::TensorImpl* before, const c10::TensorImpl* after) {
    const c10::StorageImpl* storage =
        is_plain(before) && is_plain(after) ? after->unsafe_storage().unsafeGetStorageImpl() : nullptr;
    return storage != nullptr && musa_runtime::is_alias(storage) &&
        musa_runtime::original_of(storage) == before->unsafe_storage().unsafeGetStorageImpl() &&
        before->sizes() == after->sizes() && before->strides() == after->strides() &&
        before->storage_offset() == after->storage_offset();
  }
  at::Tensor dense_on_device(at::Tensor result) override;
  void write_back_dense(const at::Tensor& original, const at::Tensor& host) override;

  bool entered_ = false;
  bool redirected_before_ = false;
  const std::atomic<uint64_t>* counter_ = nullptr;
  const char* name_ = nullptr;
  int64_t traced_from_ = 0; // see kernel_trace.h; 0 while nothing is traced
};

} // namespace musa_ops_host
