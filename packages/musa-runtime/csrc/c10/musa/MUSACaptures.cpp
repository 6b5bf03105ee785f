// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSACaptures.h>

#include <c10/musa/MUSAException.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

// Declared here because the SDK's headers may not declare it: weak, so that the library loads with an SDK that lacks it,
// and under another name, so that an SDK that declares it does not make the call ambiguous.
extern "C" [[gnu::weak]] musaError_t musa_runtime_exchange_capture_mode(musaStreamCaptureMode* mode) __asm__(
    "musaThreadExchangeStreamCaptureMode");

namespace c10::musa {
namespace {

// The captures in progress on all devices, since a capture forbids calls to any of them. Changed under the mutex.
std::atomic<int> captures{0};

struct Gate {
  std::mutex mutex; // guards held
  std::condition_variable left;
  int held = 0;
};

Gate& gate() {
  static Gate& instance = *new Gate();
  return instance;
}

} // namespace

bool capture_in_progress() noexcept { return captures.load(std::memory_order_relaxed) != 0; }

void note_capture_begin() {
  Gate& g = gate();
  std::unique_lock lock(g.mutex);
  captures.fetch_add(1); // first, so that enter() fails from now on
  g.left.wait(lock, [&g] { return g.held == 0; });
}

bool note_capture_end() {
  const std::lock_guard lock(gate().mutex);
  TORCH_CHECK(captures.load() > 0, "markCaptureEnd without markCaptureBegin: no capture is in progress.");
  return captures.fetch_sub(1) == 1;
}

std::optional<BetweenCaptures> BetweenCaptures::enter() {
  Gate& g = gate();
  const std::lock_guard lock(g.mutex);
  if (captures.load() != 0) {
    return std::nullopt;
  }
  ++g.held;
  return BetweenCaptures();
}

BetweenCaptures::~BetweenCaptures() {
  if (!held_) {
    return;
  }
  Gate& g = gate();
  const std::lock_guard lock(g.mutex);
  --g.held;
  g.left.notify_all();
}

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

} // namespace c10::musa
