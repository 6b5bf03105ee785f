// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAMacros.h>

// Stream captures of this process. One in mode "global" forbids unsafe calls, such as querying an event, to every thread: the
// call fails and invalidates the capture. MUSAStreamCaptureModeGuard exempts a thread where the SDK can; BetweenCaptures is for
// SDKs that cannot, and for musaDeviceSynchronize, from which no thread is exempt.
namespace c10::musa {

C10_MUSA_API bool capture_in_progress() noexcept;

// Around every capture, from before it begins until after it ended or failed. Waits for those who are BetweenCaptures.
C10_MUSA_API void note_capture_begin();
// Whether it was the last one under way.
C10_MUSA_API bool note_capture_end();

// For threads that know nothing of the program's captures, around calls that a capture forbids. No capture begins while one
// lives that is true, so it is held for as long as the calls take, and not while the program's code runs.
class C10_MUSA_API BetweenCaptures {
 public:
  // Never waits; false while a capture is under way.
  BetweenCaptures();
  ~BetweenCaptures();
  BetweenCaptures(const BetweenCaptures&) = delete;
  BetweenCaptures& operator=(const BetweenCaptures&) = delete;
  explicit operator bool() const {
    return held_;
  }

 private:
  bool held_;
};

} // namespace c10::musa
