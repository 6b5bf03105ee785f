// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSASyncDebugMode.h>

namespace c10::musa {

WarningState& warning_state() {
  static WarningState state;
  return state;
}

void warn_or_error_on_sync(const char* what) {
  const SyncDebugMode mode = warning_state().get_sync_debug_mode();
  if (mode == SyncDebugMode::L_DISABLED) {
    return;
  }
  TORCH_CHECK(
      mode != SyncDebugMode::L_ERROR, "called a synchronizing MUSA operation: ", what,
      " makes the host wait for the device, and torch.musa.set_sync_debug_mode(\"error\") forbids that.\n"
      "Fix: keep the value on the device, copy with non_blocking=True from or to pinned memory, or allow it here with "
      "torch.musa.set_sync_debug_mode(\"default\").");
  TORCH_WARN(
      "called a synchronizing MUSA operation: ", what,
      " makes the host wait for the device (reported because of "
      "torch.musa.set_sync_debug_mode(\"warn\")).");
}

} // namespace c10::musa
