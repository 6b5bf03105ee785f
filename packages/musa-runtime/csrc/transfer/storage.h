// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Tensor.h>

// Resizing of storages in device memory.

namespace at::musa {

// Grows or shrinks a storage to nbytes on its device, and keeps the common prefix of its bytes.
void resize_storage(c10::StorageImpl* storage, size_t nbytes);

// Grows the tensor's storage to nbytes; never shrinks it, as in torch. Called before the tensor gets sizes that need them, so
// that a tensor whose storage cannot grow keeps its shape.
void ensure_storage(c10::TensorImpl* impl, size_t nbytes);

// Grows the storage of the tensor for sizes and strides at its storage offset, and sets them.
void restride(const Tensor& tensor, IntArrayRef size, IntArrayRef stride);

} // namespace at::musa
