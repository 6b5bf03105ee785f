// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Common frame of every public entry point: counts the call, applies injected faults, rejects calls that are not
// allowed in the current state, converts C++ exceptions to error codes and stores the thread's last error.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <system_error>

#include "driver_types.h"
#include "engine/export.h"
#include "engine/thread_state.h"

namespace musa_emulator {

// A counter for concurrent threads. Each of the first threads has its own part, which it increments without a locked
// instruction. All further threads share part 0.
class CallCount {
 public:
  void add_one() noexcept {
    const unsigned part = thread_state().count_part();
    std::atomic<uint64_t>& count = parts_[part].value;
    if (part != 0) [[likely]] {
      count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    } else {
      count.fetch_add(1, std::memory_order_relaxed);
    }
  }
  uint64_t value() const noexcept {
    uint64_t sum = 0;
    for (const Part& part : parts_) {
      sum += part.value.load(std::memory_order_relaxed);
    }
    return sum;
  }

 private:
  struct alignas(64) Part { // one cache line each, to avoid false sharing
    std::atomic<uint64_t> value{0};
  };
  Part parts_[ThreadState::kCountParts];
};

struct MUSA_ENGINE ApiEntry {
  explicit ApiEntry(const char* entry_name) noexcept; // appends itself to the list of entry points
  const char* name;
  CallCount calls;
  ApiEntry* next;
};

// Behaviour of an entry point in unusual states.
enum ApiTraits : unsigned {
  kOrdinary = 0,
  kReleases = 1,      // frees a resource, even if a failure is injected
  kNeedsNoDevice = 2, // works without a device and on a lost device
  kSurvivesLoss = 4,  // works on a lost device
  kUnsafeInCapture = 8, // forbidden during a capture, depending on the thread's interaction mode; capture.h
};

// Zero if calls may run their body immediately. The low bits are reasons for pass_gate(); the bits above count the
// running host functions.
enum GateReason : uint32_t {
  kGateUninitialized = 1,
  kGateForked = 2,
  kGateUnloading = 4,
  kGateFaults = 8,
  kGateDeviceLost = 16,
  kGateNoDevice = 32, // no device, or an invalid configuration
  kGateTraced = 64,   // a profiler records calls
  kGateCapturing = 128, // a stream is capturing
  kGateHostFunction = 256,
};
MUSA_ENGINE extern std::atomic<uint32_t> gate;

// Checks a call while the gate is not zero. Returns an error that rejects the call; sets `report` to an error that
// the call returns after its body has run.
MUSA_ENGINE musaError_t pass_gate(ApiEntry& entry, unsigned traits, musaError_t* report);

// A call that a profiler records; activity.cpp. The correlation id is 0 if it is not recorded.
struct CallTrace {
  uint32_t correlation = 0;
  uint32_t outer;
  int64_t start;
};
MUSA_ENGINE void begin_call(const ApiEntry& entry, CallTrace* trace);
MUSA_ENGINE void end_call(const ApiEntry& entry, const CallTrace& trace, musaError_t status);

inline musaError_t record(musaError_t error) {
  thread_state().last_error = error;
  return error;
}

template <size_t N>
struct ApiName {
  char text[N];
  constexpr ApiName(const char (&literal)[N]) {
    for (size_t i = 0; i < N; ++i) {
      text[i] = literal[i];
    }
  }
};

template <ApiName Name>
struct ApiRegistration {
  static inline ApiEntry entry{Name.text};
};

template <ApiName Name, unsigned Traits = kOrdinary, class Body>
inline musaError_t api(Body&& body) {
  ApiEntry& entry = ApiRegistration<Name>::entry;
  entry.calls.add_one();
  musaError_t report = musaSuccess;
  CallTrace trace;
  if (const uint32_t reasons = gate.load(std::memory_order_acquire); reasons != 0) [[unlikely]] {
    if (reasons & kGateTraced) {
      begin_call(entry, &trace);
    }
    if (const musaError_t refused = pass_gate(entry, Traits, &report); refused != musaSuccess) {
      if (trace.correlation != 0) {
        end_call(entry, trace, refused);
      }
      return record(refused);
    }
  }
  musaError_t status;
  try {
    status = body();
  } catch (const std::bad_alloc&) {
    status = musaErrorMemoryAllocation;
  } catch (const std::system_error&) {
    status = musaErrorOperatingSystem; // a worker thread could not be started
  }
  if (report != musaSuccess) [[unlikely]] {
    status = report;
  }
  if (status != musaSuccess) [[unlikely]] {
    record(status);
  }
  if (trace.correlation != 0) [[unlikely]] {
    end_call(entry, trace, status);
  }
  return status;
}

MUSA_ENGINE uint64_t total_calls();
// Returns nullptr if the name is not an entry point.
MUSA_ENGINE ApiEntry* find_api(const char* name);

} // namespace musa_emulator
