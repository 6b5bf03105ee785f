// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Tensor.h>
#include <musa_runtime.h>

// Copies made by a single SDK call.

namespace at::musa {

inline bool is_musa(const Tensor& tensor) { return tensor.device().type() == c10::DeviceType::PrivateUse1; }

enum class Then : uint8_t { Return, Wait };

// Copies on the device's current stream. Waits without check_sync, which the caller has already called.
void memcpy_on_stream(void* dst, const void* src, size_t nbytes, musaMemcpyKind kind, Device device, Then then);

// Reads up to 16 bytes of the device's memory. Waits without check_sync as well.
void read_number(void* value, const void* src, size_t nbytes, Device device);

// Whether one memcpy makes dst equal to src: equal dtypes, sizes and strides, and no gaps.
bool is_memcpy(const Tensor& dst, const Tensor& src);

// The copies below require tensors that are not empty and for which is_memcpy holds.

// At least one tensor is on a device; if both are, it is the same one. Returns when the copy has finished, except within a
// device and for non_blocking, where the copy may still be in progress on the current stream.
void memcpy_tensor(const Tensor& dst, const Tensor& src, bool non_blocking);

// The tensors are on two devices. Enqueued on the source's current stream, ordered with the target's.
void memcpy_between_devices(const Tensor& dst, const Tensor& src);

} // namespace at::musa
