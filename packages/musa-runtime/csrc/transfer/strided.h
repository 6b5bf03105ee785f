// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>

// Copies of strided tensors. A copy writes the elements of its target and no byte between them: that memory belongs to other
// tensors, which another stream may be writing. Reading it is harmless.

namespace at::musa {

// Copies within a device through torch_musa::_copy_on_device, which packs serve. Sizes are equal; dtypes, strides, conj and
// neg bits may differ. Enqueued on the device's current stream.
void copy_on_device(const Tensor& dst, const Tensor& src);

// Copies within a device by 2D copies of the SDK: for equal dtypes, sizes, conj and neg bits. Returns false, and enqueues
// nothing, if that takes more than `most_calls` of them. Elements of dst may share memory if they are to be equal.
bool memcpy_strided(const Tensor& dst, const Tensor& src, int64_t most_calls = std::numeric_limits<int64_t>::max());

// Bytes from the first element to the end of the last one: fewer than nbytes() if elements share memory, as after expand().
size_t span_bytes(const Tensor& tensor);

// Returns a CPU tensor with the tensor's sizes, strides, conj and neg bits, and a copy of its memory from the first element
// to the end of the last one, including gaps. Waits for the copy.
Tensor read_span(const Tensor& tensor);

// Like read_span, but if there are gaps between the elements, the device gathers them first and the result is dense.
Tensor read_elements(const Tensor& tensor);

// Like read_elements, with the tensor's strides.
Tensor to_cpu(const Tensor& source);

// Returns a copy of a CPU tensor on a device, with its strides if it is dense, contiguous otherwise. Waits for the copy.
Tensor to_musa(const Tensor& source, Device device);

// Copies a CPU tensor of equal sizes to the elements of a tensor on a device. Waits for the copy from host memory. Elements
// of `tensor` may share memory if those of `host` do, and dtypes, conj and neg bits are equal.
void write_elements(const Tensor& tensor, const Tensor& host);

} // namespace at::musa
