// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAMacros.h>

#include <atomic>

// Reports where a program waits for the device: torch.musa.set_sync_debug_mode. The same waits count as in torch.cuda:
// reading a value, copies that the host waits for, operators whose result's shape depends on data, and waiting for a
// stream. Waiting for a device or an event is explicit in the program and does not count.

namespace c10::musa {

enum class SyncDebugMode { L_DISABLED = 0, L_WARN, L_ERROR };

// One per process; any thread may read and change it.
class WarningState {
 public:
  SyncDebugMode get_sync_debug_mode() const { return mode_.load(std::memory_order_relaxed); }
  void set_sync_debug_mode(SyncDebugMode mode) { mode_.store(mode, std::memory_order_relaxed); }

 private:
  std::atomic<SyncDebugMode> mode_{SyncDebugMode::L_DISABLED};
};

C10_MUSA_API WarningState& warning_state();

// Warns or raises, depending on the mode. `what` names the wait in the text.
C10_MUSA_API void warn_or_error_on_sync(const char* what = "a synchronizing operation");

// Called before every wait that counts, and before the work to wait for is queued: an exception in between would leave the
// device writing into memory that its owner has freed.
inline void check_sync(const char* what) {
  static WarningState& state = warning_state();
  if (C10_UNLIKELY(state.get_sync_debug_mode() != SyncDebugMode::L_DISABLED)) {
    warn_or_error_on_sync(what);
  }
}

// Names that ported code uses.
inline void memcpy_and_sync(void* dst, const void* src, int64_t nbytes, musaMemcpyKind kind, musaStream_t stream) {
  check_sync("a copy that the host waits for");
  C10_MUSA_CHECK(musaMemcpyAsync(dst, src, nbytes, kind, stream));
  C10_MUSA_CHECK(musaStreamSynchronize(stream));
}

inline void stream_synchronize(musaStream_t stream) {
  check_sync("waiting for a stream");
  C10_MUSA_CHECK(musaStreamSynchronize(stream));
}

} // namespace c10::musa
