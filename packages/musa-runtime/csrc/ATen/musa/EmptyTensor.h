// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/TensorBase.h>
#include <c10/core/MemoryFormat.h>
#include <c10/musa/MUSAMacros.h>

namespace at::detail {

// Uninitialised tensors of a musa device, on its current stream, without the dispatcher: for kernels, which are below it.
// Device -1 is the current one. The first use of the device initialises it. Memory that the allocator has cached needs no
// call of the SDK, and no device need be current. Raise c10::OutOfMemoryError.
C10_MUSA_API TensorBase empty_musa(
    IntArrayRef size, ScalarType dtype, c10::DeviceIndex device, std::optional<MemoryFormat> format = std::nullopt);
C10_MUSA_API TensorBase empty_strided_musa(
    IntArrayRef size, IntArrayRef stride, ScalarType dtype, c10::DeviceIndex device);

} // namespace at::detail
