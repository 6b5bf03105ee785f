// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAMacros.h>

#include <cstdint>
#include <string>

// Ranges and marks in a program's timeline. They are torch's user annotations (RecordScope::USER_SCOPE), so every profiler
// of torch shows them, on the host's thread and above the device's work that they enclose.

namespace musa_runtime::markers {

// Opens a range on this thread; returns the number of ranges that were open before.
C10_MUSA_API int64_t range_push(const std::string& message);
// Closes the innermost range; returns the number of ranges that are then open. Raises if none is open.
C10_MUSA_API int64_t range_pop();
// Opens a range that need not nest, and may end on another thread.
C10_MUSA_API uint64_t range_start(const std::string& message);
C10_MUSA_API void range_end(uint64_t range);
C10_MUSA_API void mark(const std::string& message);

} // namespace musa_runtime::markers
