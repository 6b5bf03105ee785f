// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAMacros.h>

// Stream captures of this process. A capture in mode "global" forbids unsafe calls, such as querying an event, to every
// thread: the call fails and invalidates the capture. MUSAStreamCaptureModeGuard exempts a thread if the SDK can;
// BetweenCaptures is for SDKs that cannot, and for musaDeviceSynchronize, from which no thread is exempt.
namespace c10::musa {

C10_MUSA_API bool capture_in_progress() noexcept;

// Called before every capture begins. Waits until no BetweenCaptures that is true exists.
C10_MUSA_API void note_capture_begin();
// Called after every capture has ended or failed. Returns whether it was the last one in progress.
C10_MUSA_API bool note_capture_end();

// For threads that are independent of the program's captures, around calls that a capture forbids. No capture begins while
// a true instance exists, so it is held only for the duration of the calls, and not while the program's code runs.
class C10_MUSA_API BetweenCaptures {
 public:
  // Never waits; false while a capture is in progress.
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
