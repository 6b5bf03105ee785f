// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Tensor.h>

// Resizing of storages in device memory.

namespace at::musa {

// Grows or shrinks a storage to nbytes on its device, and keeps the common prefix of its bytes.
void resize_storage(c10::StorageImpl* storage, size_t nbytes);

// Grows the tensor's storage to hold its sizes and strides at its offset. Never shrinks it, as in torch.
void ensure_storage(c10::TensorImpl* impl);

// Sets the sizes and strides of the tensor at its storage offset, and grows its storage for them.
void restride(const Tensor& tensor, IntArrayRef size, IntArrayRef stride);

} // namespace at::musa
