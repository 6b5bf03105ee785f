// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAStream.h>

namespace c10d::mccl {

// Whether a graph is being made of what is put on the stream.
inline bool captures(const c10::musa::MUSAStream& stream) {
  musaStreamCaptureStatus status = musaStreamCaptureStatusNone;
  C10_MUSA_CHECK(musaStreamIsCapturing(stream.stream(), &status));
  return status != musaStreamCaptureStatusNone;
}

} // namespace c10d::mccl
