// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAMacros.h>
#include <c10/util/Exception.h>
#include <c10/util/irange.h>
#include <musa_runtime.h>

namespace c10::musa {

// Raises torch.AcceleratorError for a failed SDK call: the call as written, the SDK's name and text for the code, the
// likely causes and the fix. Clears the thread's last error, so the next call starts clean.
[[noreturn]] C10_MUSA_API void throw_musa_error(
    musaError_t error, const char* call, const char* function, const char* file, uint32_t line);

// The same text as a warning, for destructors and other places that must not throw.
C10_MUSA_API void warn_musa_error(musaError_t error, const char* call);

} // namespace c10::musa

#define C10_MUSA_CHECK(EXPR) \
  do { \
    const musaError_t musa_error_ = (EXPR); \
    if (C10_UNLIKELY(musa_error_ != musaSuccess)) { \
      ::c10::musa::throw_musa_error(musa_error_, #EXPR, __func__, __FILE__, static_cast<uint32_t>(__LINE__)); \
    } \
  } while (0)

#define C10_MUSA_CHECK_WARN(EXPR) \
  do { \
    const musaError_t musa_error_ = (EXPR); \
    if (C10_UNLIKELY(musa_error_ != musaSuccess)) { \
      ::c10::musa::warn_musa_error(musa_error_, #EXPR); \
    } \
  } while (0)

// For callers that handle the code themselves.
#define C10_MUSA_ERROR_HANDLED(EXPR) (EXPR)

#define C10_MUSA_IGNORE_ERROR(EXPR) \
  do { \
    if (C10_UNLIKELY((EXPR) != musaSuccess)) { \
      (void)musaGetLastError(); \
    } \
  } while (0)

#define C10_MUSA_CLEAR_ERROR() ((void)musaGetLastError())

#define C10_MUSA_KERNEL_LAUNCH_CHECK() C10_MUSA_CHECK(musaGetLastError())
