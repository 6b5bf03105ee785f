// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/musa/MUSAMacros.h>

namespace at::musa {

// Strided tensors only. Each keeps strides where the source is dense and does not overlap itself.
C10_MUSA_API Tensor to_cpu(const Tensor& source);
C10_MUSA_API Tensor to_musa(const Tensor& source, Device device);

// dst.copy_(src) between any two strided tensors of which at least one is on a musa device: dtypes, strides, conj and
// neg bits may differ, sizes must be equal. non_blocking: return while a copy between the device and pinned host memory
// is still under way on the current stream.
C10_MUSA_API void copy_dense(const Tensor& dst, const Tensor& src, bool non_blocking);

// Like Tensor.resize_ for a contiguous result: storage grows on its device, and never shrinks.
C10_MUSA_API void resize_dense(const Tensor& tensor, IntArrayRef size);

// Grows or shrinks a storage to nbytes on its device, keeping the common prefix of its bytes.
C10_MUSA_API void resize_storage(c10::StorageImpl* storage, size_t nbytes);

} // namespace at::musa
