// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// musa_emulator.h: functions for tests, and for libraries that enqueue work.
#include "musa_emulator.h"

#include "api_support.h"
#include "engine/fault.h"
#include "engine/kernel.h"
#include "engine/lifecycle.h"
#include "engine/memory.h"

#include <string_view>

using namespace musa_emulator;

// These functions do not use api(): a test that configures the emulator must not hit its own injected faults, and
// these calls must not be counted. Launching a task does use it, because it is ordinary work.

musaError_t musaEmulatorFailNth(const char* name, unsigned long long n, musaError_t code) {
  const ApiEntry* entry = name != nullptr ? find_api(name) : nullptr;
  if (entry == nullptr || n == 0 || code == musaSuccess) {
    return musaErrorInvalidValue;
  }
  add_fault(entry, n, code);
  return musaSuccess;
}

musaError_t musaEmulatorFailNext(const char* name, musaError_t code) { return musaEmulatorFailNth(name, 1, code); }

musaError_t musaEmulatorFailCall(unsigned long long n, musaError_t code) {
  if (n == 0 || code == musaSuccess) {
    return musaErrorInvalidValue;
  }
  add_fault(nullptr, n, code);
  return musaSuccess;
}

int musaEmulatorFaultPending(void) { return fault_pending() ? 1 : 0; }

void musaEmulatorClearFaults(void) { clear_faults(); }

unsigned long long musaEmulatorCallCount(void) { return total_calls(); }

unsigned long long musaEmulatorApiCallCount(const char* name) {
  const ApiEntry* entry = name != nullptr ? find_api(name) : nullptr;
  return entry != nullptr ? entry->calls.value() : 0;
}

size_t musaEmulatorLiveAllocations(int device) { return find_device(device) != nullptr ? live_allocations(device) : 0; }

size_t musaEmulatorLiveBytes(int device) { return find_device(device) != nullptr ? live_bytes(device) : 0; }

size_t musaEmulatorLiveHostAllocations(void) { return live_host_allocations(); }

size_t musaEmulatorLiveHostBytes(void) { return live_host_bytes(); }

size_t musaEmulatorLiveStreams(void) { return engine().live_streams.load(); }

size_t musaEmulatorLiveEvents(void) { return engine().live_events.load(); }

size_t musaEmulatorLiveGraphs(void) { return engine().live_graphs.load(); }

size_t musaEmulatorPendingOperations(void) {
  size_t pending = 0;
  Lock lock(engine().mutex);
  for (const auto& device : engine().devices) {
    for (const Stream* stream : device->streams) {
      pending += stream->submitted.load() - stream->completed.load();
    }
  }
  return pending;
}

int torch_musa_capability(const char* name) {
  ensure_initialized();
  const std::string_view question(name);
  if (question == "lacks_float64") {
    return engine().config.float64 ? 0 : 1;
  }
  return question == "computes_on_host" ? 1 : -1;
}

const char* musaEmulatorMode(void) {
  ensure_initialized();
  return mode_name(engine().config.mode);
}

const char* musaEmulatorConfigurationError(void) {
  ensure_initialized();
  return configuration_error();
}

musaError_t musaEmulatorReset(void) { return ensure_initialized() ? reset() : musaErrorInitializationError; }

musaError_t musaEmulatorLaunchTask(
    musaStream_t stream, const char* name, musaEmulatorTaskFn function, void* payload, void (*destroy)(void*)) {
  // Created first, because it owns the payload even if the call fails.
  std::shared_ptr<Launch> task = make_task(name, function, payload, destroy);
  return api<"musaEmulatorLaunchTask">([&] {
    return with_stream(stream, [&](Stream& found) {
      return function != nullptr ? submit(found, KernelOperation{std::move(task)}) : musaErrorInvalidValue;
    });
  });
}

musaError_t musaEmulatorRegisterKernel(const void* symbol, const musaEmulatorKernelInfo* info) {
  return info != nullptr ? register_kernel(symbol, *info) : musaErrorInvalidValue;
}

musaError_t musaEmulatorUnregisterKernel(const void* symbol) { return unregister_kernel(symbol); }
