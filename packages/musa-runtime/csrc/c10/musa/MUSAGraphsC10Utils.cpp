// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSAGraphsC10Utils.h>

// Declared here because the SDK's headers may not declare it: weak, so that the library loads with an SDK that lacks it,
// and under another name, so that an SDK that declares it does not make the call ambiguous.
extern "C" [[gnu::weak]] musaError_t musa_runtime_exchange_capture_mode(musaStreamCaptureMode* mode)
    __asm__("musaThreadExchangeStreamCaptureMode");

namespace c10::musa {

bool exchange_stream_capture_mode(musaStreamCaptureMode* mode) noexcept {
  if (musa_runtime_exchange_capture_mode == nullptr) {
    return false;
  }
  // Not reported: it fails where the guarded calls also fail, such as in host functions.
  const bool exchanged = musa_runtime_exchange_capture_mode(mode) == musaSuccess;
  if (!exchanged) {
    C10_MUSA_CLEAR_ERROR();
  }
  return exchanged;
}

bool current_stream_is_capturing() {
  const MUSAStream stream = getCurrentMUSAStream();
  if (stream.id() == 0) {
    return false;
  }
  musaStreamCaptureStatus status = musaStreamCaptureStatusNone;
  C10_MUSA_CHECK(musaStreamIsCapturing(stream.stream(), &status));
  return status != musaStreamCaptureStatusNone;
}

} // namespace c10::musa
