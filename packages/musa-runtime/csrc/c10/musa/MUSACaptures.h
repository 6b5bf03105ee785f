// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAMacros.h>
#include <musa_runtime.h>

#include <optional>
#include <utility>

// Stream captures of this process. A capture in mode "global" forbids unsafe calls, such as querying an event, to every
// thread: the call fails and invalidates the capture. MUSAStreamCaptureModeGuard exempts a thread if the SDK can;
// BetweenCaptures is for SDKs that cannot, and for musaDeviceSynchronize, from which no thread is exempt.
namespace c10::musa {

// A hint: another thread may begin a capture immediately afterwards. Code that makes a forbidden call needs a BetweenCaptures.
C10_MUSA_API bool capture_in_progress() noexcept;

// Called before every capture begins. Waits until no BetweenCaptures exists.
C10_MUSA_API void note_capture_begin();
// Called after every capture has ended or failed. Returns whether it was the last one in progress.
C10_MUSA_API bool note_capture_end();

// Proof that no capture is in progress, for calls that a capture forbids and that the runtime makes for its own purposes. No
// capture begins while an instance exists, so it is held only for the duration of the calls, and not while the program's
// code runs. Functions that make such calls take one as a parameter, so that they cannot be called without the check.
class C10_MUSA_API BetweenCaptures {
 public:
  // Never waits; empty while a capture is in progress.
  static std::optional<BetweenCaptures> enter();

  BetweenCaptures(BetweenCaptures&& other) noexcept : held_(std::exchange(other.held_, false)) {}
  ~BetweenCaptures();
  BetweenCaptures& operator=(BetweenCaptures&&) = delete;

 private:
  BetweenCaptures() = default;

  bool held_ = true; // false once it is moved from
};

// Swaps the capture interaction mode of the calling thread with *mode. Returns false, and swaps nothing, if the SDK has no
// musaThreadExchangeStreamCaptureMode (SDK 4.x does not publish it) or the call fails.
C10_MUSA_API bool exchange_stream_capture_mode(musaStreamCaptureMode* mode) noexcept;

// Sets the interaction mode of the calling thread for a scope. A thread in the mode "global", the default, may not
// allocate, free or query an event while any stream is captured in that mode: the call fails and invalidates the capture.
// The runtime makes such calls for its own purposes, where the program only requested a tensor, so it makes them as
// "relaxed".
struct MUSAStreamCaptureModeGuard {
  explicit MUSAStreamCaptureModeGuard(musaStreamCaptureMode desired = musaStreamCaptureModeRelaxed) noexcept
      : mode_(desired), exchanged_(exchange_stream_capture_mode(&mode_)) {}
  ~MUSAStreamCaptureModeGuard() {
    if (exchanged_) {
      exchange_stream_capture_mode(&mode_);
    }
  }
  MUSAStreamCaptureModeGuard(const MUSAStreamCaptureModeGuard&) = delete;
  MUSAStreamCaptureModeGuard& operator=(const MUSAStreamCaptureModeGuard&) = delete;

 private:
  musaStreamCaptureMode mode_;
  bool exchanged_;
};

} // namespace c10::musa
