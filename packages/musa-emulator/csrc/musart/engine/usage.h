// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The devices that this process uses, for libmtml in other processes.
//
// The figures are in a page of shared memory, whose descriptor libmtml finds in /proc/<pid>/fd. The kernel removes them
// with the process, however it ends. A forked child inherits the descriptor, but is not the page's owner.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "engine/config.h"
#include "engine/export.h"

namespace musa_emulator {

// Only the owner writes, with a lock held, so plain stores suffice.
struct DeviceUsage {
  std::atomic<uint64_t> bytes{0}; // device memory; memory lock
  std::atomic<uint32_t> running{0}; // operations that run at this moment; engine().mutex
  std::atomic<bool> active{false}; // a context was needed; written without a lock, by whole stores

  void begin_operation() { running.store(running.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  void end_operation() { running.store(running.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed); }
};

struct UsagePage {
  static constexpr uint64_t kMagic = 0x31656761'7355754d; // another value for each layout

  std::atomic<uint64_t> magic{0}; // written last
  pid_t owner = 0;
  std::array<DeviceUsage, kMaxDevices> devices; // by physical number
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

// Name of the page's file, as memfd_create takes it.
MUSA_ENGINE std::string usage_name(const Config& config);

// Creates the page at the first call, and clears it at later ones. If the system refuses shared memory, the page is
// private, so libmtml does not list this process.
void publish_usage(const Config& config);
// Constant address. publish_usage() must have been called.
DeviceUsage& usage_of(int physical);

} // namespace musa_emulator
