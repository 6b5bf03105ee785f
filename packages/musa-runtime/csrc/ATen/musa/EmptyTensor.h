// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/TensorBase.h>
#include <c10/core/MemoryFormat.h>
#include <c10/musa/MUSAMacros.h>

namespace at::detail {

// Returns an uninitialised tensor on a musa device, for its current stream. Bypasses the dispatcher, since kernels are
// below it. Device -1 is the current one. The first use of the device initialises it. For cached memory, no SDK call is
// made and the device need not be current. Raises c10::OutOfMemoryError.
C10_MUSA_API TensorBase empty_musa(
    IntArrayRef size, ScalarType dtype, c10::DeviceIndex device, std::optional<MemoryFormat> format = std::nullopt);
C10_MUSA_API TensorBase
empty_strided_musa(IntArrayRef size, IntArrayRef stride, ScalarType dtype, c10::DeviceIndex device);

} // namespace at::detail
