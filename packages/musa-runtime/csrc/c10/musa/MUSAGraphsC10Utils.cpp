// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSAGraphsC10Utils.h>

namespace c10::musa {

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
