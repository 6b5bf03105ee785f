// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <musa_runtime/host_scope.h>
#include <musa_runtime/op_registry.h>

#include <atomic>
#include <initializer_list>

namespace musa_runtime {

// A row of a generated table. The kernel is kept as a plain pointer with the function that knows its type, so that the
// templates around it are instantiated once per signature and not once per operator: that is most of the build time.
struct NativeOp {
  const char* name;
  c10::KernelFunction (*make)(void (*)());
  void (*kernel)();
};

template <typename Signature>
NativeOp native_op(const char* name, Signature* kernel) {
  return {
      name,
      [](void (*erased)()) {
        return c10::KernelFunction::makeFromUnboxedRuntimeFunction(reinterpret_cast<Signature*>(erased));
      },
      reinterpret_cast<void (*)()>(kernel)};
}

// Declares a table's kernels as candidates of the provider "native"; calls[i] counts table[i].
bool register_native_ops(const NativeOp* table, std::atomic<uint64_t>* calls, size_t count);

// Whether the tensors of the lists lie on more than one device.
bool spans_devices(std::initializer_list<at::TensorList> lists);

} // namespace musa_runtime
