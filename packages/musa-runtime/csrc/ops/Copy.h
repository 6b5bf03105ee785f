// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/musa/MUSAMacros.h>

namespace at::musa {

// Strided tensors only. to_cpu keeps the strides of any view; to_musa those of a dense tensor.
C10_MUSA_API Tensor to_cpu(const Tensor& source);
C10_MUSA_API Tensor to_musa(const Tensor& source, Device device);

// Sends a host tensor of the same sizes and strides (as to_cpu makes it) back over the tensor's span, gaps included. Right
// for any view, also one whose elements share memory.
C10_MUSA_API void write_span(const Tensor& tensor, const Tensor& host);

// dst.copy_(src) between any two strided tensors of which at least one is on a musa device: dtypes, strides, conj and
// neg bits may differ, sizes must be equal. non_blocking: return while a copy between the device and pinned host memory
// is still under way on the current stream.
C10_MUSA_API void copy_dense(const Tensor& dst, const Tensor& src, bool non_blocking);

// Gives the tensor another shape at its storage offset; its storage grows on its device where needed, and never shrinks.
C10_MUSA_API void restride(const Tensor& tensor, IntArrayRef size, IntArrayRef stride);

// Grows or shrinks a storage to nbytes on its device, keeping the common prefix of its bytes.
C10_MUSA_API void resize_storage(c10::StorageImpl* storage, size_t nbytes);

} // namespace at::musa
