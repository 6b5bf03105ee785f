// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <c10/musa/MUSASyncDebugMode.h>
#include <musa_runtime/captured_call.h>
#include <musa_runtime/host_scope.h>
#include <musa_runtime/op_registry.h>

#include <atomic>
#include <initializer_list>

namespace musa_runtime {

// A generated kernel as the dispatcher calls it: while a graph is captured, the call is recorded instead of made.
template <typename Signature>
struct NativeKernel;
template <typename Return, typename... Args>
struct NativeKernel<Return(Args...)> final : c10::OperatorKernel {
  using Function = Return (*)(Args...);

  NativeKernel(Function kernel_, const Candidate& candidate_) : kernel(kernel_), candidate(candidate_) {}

  Return operator()(Args... args) {
    if (C10_UNLIKELY(capturing())) {
      return recording_kernel().call<Return, Args...>(
          *candidate.handle, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), std::forward<Args>(args)...);
    }
    return kernel(std::forward<Args>(args)...);
  }

  Function kernel;
  const Candidate& candidate;
};

// A row of a generated table. The kernel is kept as a plain pointer with the function that knows its type, so that the
// templates around it are instantiated once per signature and not once per operator: that is most of the build time.
struct NativeOp {
  const char* name;
  c10::KernelFunction (*make)(void (*)(), const Candidate&);
  void (*kernel)();
};

template <typename Signature>
NativeOp native_op(const char* name, Signature* kernel) {
  return {
      name,
      [](void (*erased)(), const Candidate& candidate) {
        return c10::KernelFunction::makeFromUnboxedFunctor<false, NativeKernel<Signature>>(
            std::make_unique<NativeKernel<Signature>>(reinterpret_cast<Signature*>(erased), candidate));
      },
      reinterpret_cast<void (*)()>(kernel)};
}

// Declares a table's kernels as candidates of the provider "native"; calls[i] counts table[i].
bool register_native_ops(const NativeOp* table, std::atomic<uint64_t>* calls, size_t count);

// Indexing waits for the device where a mask must be turned into indices, and not otherwise.
void check_sync_of_masks(const c10::List<std::optional<at::Tensor>>& indices);

// Whether the tensors of the lists lie on more than one device.
bool spans_devices(std::initializer_list<at::TensorList> lists);

} // namespace musa_runtime
