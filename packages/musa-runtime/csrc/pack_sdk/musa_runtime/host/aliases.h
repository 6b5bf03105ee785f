// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/core/TensorImpl.h>
#include <c10/musa/MUSAMacros.h>

// CPU tensors over the memory of musa tensors.

namespace musa_runtime {

// Returns a new storage, labelled CPU, over the same memory. (The StorageImpl itself cannot be shared: torch takes the
// device of every view from its storage, so views made by a CPU kernel would claim to be musa tensors.)
C10_MUSA_API c10::Storage alias_storage(c10::StorageImpl* original);

// The deleter of an alias's DataPtr, whose context is the musa StorageImpl that the alias keeps alive.
C10_MUSA_API void release_original(void* original);

inline bool is_alias(const c10::StorageImpl* storage) { return storage->data_ptr().get_deleter() == &release_original; }

inline c10::StorageImpl* original_of(const c10::StorageImpl* alias) {
  return static_cast<c10::StorageImpl*>(alias->data_ptr().get_context());
}

// Labels a strided CPU tensor as one of the device, over this storage of the device.
C10_MUSA_API at::Tensor on_device(at::Tensor result, c10::Storage storage, c10::Device target);

// Grows the storage of a musa tensor for sizes and strides at its storage offset, and sets them.
C10_MUSA_API void restride(const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides);

struct C10_MUSA_API AliasImpl final : c10::TensorImpl {
  AliasImpl(c10::TensorImpl* source, c10::Storage storage);

  // Distinguishes a storage that a kernel resized from one that it replaced.
  const c10::StorageImpl* made_with;
};

} // namespace musa_runtime
