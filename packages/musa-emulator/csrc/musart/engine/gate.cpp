// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The checks before a call: declared in api.h, apart because they ask the states of devices, captures and faults.
#include "engine/api.h"
#include "engine/capture.h"
#include "engine/device.h"
#include "engine/fault.h"
#include "engine/lifecycle.h"
#include "engine/loss.h"

namespace musa_emulator {

musaError_t pass_gate(ApiEntry& entry, unsigned traits, musaError_t* report) {
  // Checked before anything is locked: after a fork, the state of the locks is undefined.
  if (gate.load(std::memory_order_acquire) & kGateForked) {
    return musaErrorInitializationError;
  }
  if (gate.load(std::memory_order_acquire) & kGateUninitialized) {
    initialize();
  }
  const uint32_t reasons = gate.load(std::memory_order_acquire);
  if (reasons & kGateUnloading) {
    return musaErrorMusartUnloading;
  }
  ThreadState& thread = thread_state();
  if (thread.running == ThreadState::Running::HostFunction) {
    return musaErrorNotPermitted;
  }
  if (reasons & kGateFaults) {
    if (const musaError_t fault = next_fault(entry); fault != musaSuccess) {
      if (loses_device(fault)) {
        if (Device* device = find_device(thread.device)) {
          lose_device(*device, fault);
        }
      }
      if ((traits & kReleases) == 0) {
        return fault;
      }
      *report = fault;
    }
  }
  if ((traits & kNeedsNoDevice) == 0) {
    if (engine().config.error != musaSuccess) {
      return engine().config.error;
    }
    if ((reasons & kGateDeviceLost) && (traits & kSurvivesLoss) == 0) {
      if (const Device* device = find_device(thread.device)) {
        if (const musaError_t lost = device->lost.load(std::memory_order_relaxed); lost != musaSuccess) {
          if ((traits & kReleases) == 0) {
            return lost;
          }
          *report = lost;
        }
      }
    }
  }
  if ((reasons & kGateCapturing) && (traits & kUnsafeInCapture) != 0) {
    return forbid_unsafe_call(); // applies to a call that releases too: it does nothing
  }
  return musaSuccess;
}

} // namespace musa_emulator
