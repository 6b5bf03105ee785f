// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/api.h"

#include <bit>
#include <cstring>

#include "engine/capture.h"
#include "engine/device.h"
#include "engine/fault.h"
#include "engine/lifecycle.h"

namespace musa_emulator {
namespace {

// Filled while libraries load, before any call; read-only afterwards.
constinit ApiEntry* first_entry = nullptr;

} // namespace

constinit std::atomic<uint32_t> gate{kGateUninitialized};

ApiEntry::ApiEntry(const char* entry_name) noexcept : name(entry_name), next(first_entry) {
  first_entry = this;
}

ApiEntry* find_api(const char* name) {
  for (ApiEntry* entry = first_entry; entry != nullptr; entry = entry->next) {
    if (std::strcmp(entry->name, name) == 0) {
      return entry;
    }
  }
  return nullptr;
}

uint64_t total_calls() {
  uint64_t total = 0;
  for (ApiEntry* entry = first_entry; entry != nullptr; entry = entry->next) {
    total += entry->calls.value();
  }
  return total;
}

namespace {

// The lowest number that no other living thread has, so that few threads share a part of a count; threads beyond 63 share
// one. Relaxed and without a mutex: threads that only count must not look synchronised to a race detector.
std::atomic<uint64_t> taken_numbers{1}; // a bit each; 0 is no number

class ThreadNumber {
 public:
  ThreadNumber() {
    uint64_t taken = taken_numbers.load(std::memory_order_relaxed);
    do {
      value = static_cast<unsigned>(std::countr_one(taken));
    } while (value < 64 && !taken_numbers.compare_exchange_weak(
                               taken, taken | uint64_t{1} << value, std::memory_order_relaxed));
  }
  ~ThreadNumber() {
    if (value < 64) {
      taken_numbers.fetch_and(~(uint64_t{1} << value), std::memory_order_relaxed);
    }
  }
  unsigned value = 0;
};

} // namespace

unsigned ThreadState::number_thread() noexcept {
  static thread_local const ThreadNumber own;
  return number = own.value;
}

constinit thread_local ThreadState current_thread_state;

bool loses_device(musaError_t error) {
  switch (error) {
    case musaErrorECCUncorrectable:
    case musaErrorMtlinkUncorrectable:
    case musaErrorIllegalAddress:
    case musaErrorLaunchTimeout:
    case musaErrorAssert:
    case musaErrorHardwareStackError:
    case musaErrorIllegalInstruction:
    case musaErrorMisalignedAddress:
    case musaErrorInvalidAddressSpace:
    case musaErrorInvalidPc:
    case musaErrorLaunchFailure:
      return true;
    default:
      return false;
  }
}

musaError_t pass_gate(ApiEntry& entry, unsigned traits, musaError_t* report) {
  // Before anything that locks: after a fork the locks are in an unknown state.
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
    return forbid_unsafe_call(); // also for a call that releases: it does nothing
  }
  return musaSuccess;
}

} // namespace musa_emulator
