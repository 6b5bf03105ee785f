// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/Device.h>
#include <musa_runtime.h>

namespace c10::musa {

// Whether the runtime created the stream, or it is the default stream. Such streams are never destroyed; another handle may
// be invalid by now.
bool is_own_stream(musaStream_t stream, DeviceIndex device) noexcept;

} // namespace c10::musa
