// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/lifecycle.h"

#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "engine/api.h"
#include "engine/capture.h"
#include "engine/device.h"
#include "engine/event.h"
#include "engine/fault.h"
#include "engine/graph.h"
#include "engine/memory.h"
#include "engine/segfault.h"
#include "engine/stream.h"

namespace musa_emulator {
namespace {

std::once_flag initialized;

// A forked child has no worker threads and may have inherited locked mutexes, so all its calls fail, as on a GPU. A
// process may fork freely before its first use of the runtime.
void after_fork_in_child() {
  if ((gate.load(std::memory_order_relaxed) & kGateUninitialized) == 0) {
    gate.fetch_or(kGateForked);
  }
}

void at_exit() {
  if (gate.load(std::memory_order_relaxed) & kGateForked) {
    return;
  }
  gate.fetch_or(kGateUnloading);
  stop_workers();
}

void configure(Engine& state) {
  state.config = read_config();
  if (const std::string problem = parse_faults(state.config.faults); !problem.empty()) {
    state.config.error = musaErrorInitializationError;
    state.config.problem = "MUSA_EMULATOR_FAIL: " + problem;
  }
  if (!state.config.problem.empty()) {
    std::fprintf(stderr, "musa-emulator: %s\n", state.config.problem.c_str());
  }
  publish_usage(state.config);
  create_devices(state);
  create_default_streams(state);
  reserve_memory(state);
  if (state.config.error != musaSuccess) {
    gate.fetch_or(kGateNoDevice);
  }
  if (state.config.strict) {
    install_fault_handler();
  }
}

} // namespace

Engine& engine() {
  static Engine* instance = new Engine;
  return *instance;
}

void initialize() {
  std::call_once(initialized, [] {
    configure(engine());
    pthread_atfork(nullptr, nullptr, after_fork_in_child);
    std::atexit(at_exit);
    gate.fetch_and(~uint32_t{kGateUninitialized});
  });
}

bool ensure_initialized() {
  if (gate.load(std::memory_order_acquire) & kGateForked) {
    return false;
  }
  initialize();
  return (gate.load(std::memory_order_acquire) & kGateUnloading) == 0;
}

const char* configuration_error() {
  const std::string& problem = engine().config.problem;
  return problem.empty() ? nullptr : problem.c_str();
}

musaError_t reset() {
  Engine& state = engine();
  if (thread_state().running != ThreadState::Running::Nothing) {
    return musaErrorNotPermitted;
  }
  clear_faults();
  end_all_captures();
  for (auto& device : state.devices) {
    device->lost.store(musaSuccess); // work after the error is dropped, other work finishes
    synchronize_device(*device);
  }
  release_all_graphs();
  {
    Lock lock(state.mutex);
    for (auto& device : state.devices) {
      release_streams(*device, lock);
    }
    release_all_events();
  }
  stop_workers();
  Lock lock(state.mutex);
  state.stopping = false;
  for (auto& device : state.devices) {
    device->legacy->magic.store(Stream::kDead);
    recycle_stream(*device->legacy);
  }
  state.devices.clear();
  release_all_memory(state);
  lock.unlock();
  gate.fetch_and(~uint32_t{kGateDeviceLost | kGateNoDevice});
  thread_state() = ThreadState{};
  configure(state);
  return musaSuccess;
}

musaError_t reset_device(Device& device) {
  if (const musaError_t status = may_wait(); status != musaSuccess) {
    return status;
  }
  synchronize_device(device);
  {
    Lock lock(engine().mutex);
    release_streams(device, lock);
    device.peers.clear();
  }
  release_device_memory(device.ordinal);
  device.lost.store(musaSuccess);
  device.active.store(false);
  return musaSuccess;
}

} // namespace musa_emulator
