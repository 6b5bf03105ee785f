// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/api.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

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

// The lowest number that no other living thread has, so that few threads share a part of a count.
class ThreadNumber {
 public:
  ThreadNumber() {
    const std::lock_guard<std::mutex> lock(numbers().mutex);
    std::vector<bool>& taken = numbers().taken;
    value = static_cast<unsigned>(std::find(taken.begin(), taken.end(), false) - taken.begin());
    taken.resize(std::max<size_t>(taken.size(), value + 1));
    taken[value] = true;
  }
  ~ThreadNumber() {
    const std::lock_guard<std::mutex> lock(numbers().mutex);
    numbers().taken[value] = false;
  }
  unsigned value;

 private:
  struct Numbers {
    std::mutex mutex;
    std::vector<bool> taken{true}; // 0 is no number
  };
  // Leaked: threads end until the very end of the process.
  static Numbers& numbers() {
    static auto& instance = *new Numbers();
    return instance;
  }
};

} // namespace

unsigned ThreadState::number_thread() noexcept {
  static thread_local const ThreadNumber own;
  return number = own.value;
}

ThreadState& thread_state() {
  thread_local ThreadState state;
  return state;
}

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
  if (thread.running == ThreadState::Running::HostFunction && (traits & kInHostFunction) == 0) {
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
    if (reasons & kGateDeviceLost) {
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
  return musaSuccess;
}

} // namespace musa_emulator
