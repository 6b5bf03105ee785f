// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Argument checks. Each raises c10::Error with the actual values and the change that fixes the call. Values of tensors are on
// the device; the kernels check them by assertions.
#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <optional>

#include "kernels/launch.h"

namespace musa_ops_serving {

struct Named {
  const char* name;
  const at::Tensor& tensor;
};

// Returns the kernels' name of float16, bfloat16 or float32; raises for other dtypes.
Dtype check_floating(const char* op, const Named& named);
// Checks that the tensors have the dtype of the first, which check_floating() accepts, and its device.
Dtype check_alike(const char* op, std::initializer_list<Named> tensors);
// Raises unless the tensor is on this device.
void check_device(const char* op, const Named& named, c10::Device device);
// Raises unless the tensor has this dtype and number of dimensions and is on this device.
void check_kind(const char* op, const Named& named, at::ScalarType dtype, int64_t dims, c10::Device device);
// Raises unless the tensor has this shape.
void check_sizes(const char* op, const Named& named, at::IntArrayRef sizes, const char* meaning);
void check_dims(const char* op, const Named& named, int64_t dims, const char* meaning);
// Raises if a number of elements or a stride does not fit into the kernels' 32-bit numbers.
void check_int32(const char* op, const char* name, int64_t value);

// Whether eight elements can be loaded together: addresses and strides are multiples of eight elements. The last dimension has to
// be contiguous.
bool is_aligned(const at::Tensor& tensor);
// The tensor, or a contiguous copy if its last dimension is not contiguous, or if it has to be aligned and is not.
at::Tensor readable(const at::Tensor& tensor, bool aligned = true);

// Checks [blocks, block_size, kv_heads, size] with a contiguous last dimension, and returns how the numbers are stored.
CacheDtype check_cache(const char* op, const Named& cache, const at::Tensor& other);
// Checks a float32 tensor of one element or of one for each head.
Scale check_scale(
    const char* op, const char* name, const std::optional<at::Tensor>& scale, int64_t heads, c10::Device device);

// Checks an int32 or int64 tensor of one dimension with this number of elements. Empty for an absent tensor.
Integers check_integers(const char* op, const Named& named, int64_t count, c10::Device device);
// Raises unless the tensor is float32 of shape [count], contiguous, and on this device.
const float* check_floats(const char* op, const Named& named, int64_t count, c10::Device device, const char* meaning);
// The same for an argument that may be absent: null then.
const float* check_floats(
    const char* op, const char* name, const std::optional<at::Tensor>& tensor, int64_t count, c10::Device device,
    const char* meaning);

// A tensor of up to three dimensions as [tokens, heads, size], with sizes 1 for missing ones; more dimensions become one.
at::Tensor as_heads(const at::Tensor& tensor);
Heads heads_of(const at::Tensor& tensor);
Cache cache_of(const at::Tensor& tensor);

} // namespace musa_ops_serving
