// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/Allocator.h>
#include <c10/musa/MUSACaptures.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAStream.h>

#include <ostream>

namespace c10::musa {

enum class CaptureStatus : int {
  None = musaStreamCaptureStatusNone,
  Active = musaStreamCaptureStatusActive,
  Invalidated = musaStreamCaptureStatusInvalidated
};

inline std::ostream& operator<<(std::ostream& os, CaptureStatus status) {
  switch (status) {
    case CaptureStatus::None: return os << "musaStreamCaptureStatusNone";
    case CaptureStatus::Active: return os << "musaStreamCaptureStatusActive";
    case CaptureStatus::Invalidated: return os << "musaStreamCaptureStatusInvalidated";
  }
  return os << "unknown musaStreamCaptureStatus " << static_cast<int>(status);
}

// The capture status of the current stream. Creates the device's context unless there is one.
inline CaptureStatus currentStreamCaptureStatusMayInitCtx() {
  musaStreamCaptureStatus status = musaStreamCaptureStatusNone;
  C10_MUSA_CHECK(musaStreamIsCapturing(getCurrentMUSAStream().stream(), &status));
  return static_cast<CaptureStatus>(status);
}

// Whether the current stream of the current device is being captured. Does not query the default stream, which cannot be
// captured: the query may disturb the capture of another stream.
C10_MUSA_API bool current_stream_is_capturing();

// The same for kernels and predicates of packs, which run at every call of an operator: cheap unless a capture between
// markCaptureBegin and markCaptureEnd is in progress in this process.
inline bool capturing() { return capture_in_progress() && current_stream_is_capturing(); }

} // namespace c10::musa
