// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// What every entry point passes through: counts of calls, faults that tests inject, counts of live objects. The emulator's C
// API for tests (musa_emulator.h) reads and sets them. The state is in libmusa, on which the other libraries depend.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#define MUSA_CUDA_EXPORT __attribute__((visibility("default")))

namespace musa_cuda {

enum EntryKind { kCall, kRelease, kQuery };

// An entry point.
struct Entry {
  const char* name;
  EntryKind kind;
  std::atomic<uint64_t> calls{0};
};

// The state of a library's entry points; created when it is loaded.
struct MUSA_CUDA_EXPORT Registration {
  template <std::size_t n>
  explicit Registration(Entry* const (&entries)[n]) : Registration(entries, n) {}
  Registration(Entry* const* entries, std::size_t count);
};

// Whether a fault is set, or a fault lost the device.
MUSA_CUDA_EXPORT extern std::atomic<bool> faults_are_set;
// Whether a fault was set in this process, so injected_error() may be set.
MUSA_CUDA_EXPORT extern std::atomic<bool> faults_were_set;
// The code with which this call fails, or 0.
MUSA_CUDA_EXPORT int next_fault(const Entry& entry);
// The SDK's variables of the environment, as CUDA's: before the first call of CUDA.
MUSA_CUDA_EXPORT extern std::atomic<bool> environment_is_read;
MUSA_CUDA_EXPORT void read_environment();
// The error that a fault left for musaGetLastError on this thread, or 0.
MUSA_CUDA_EXPORT int& injected_error();

enum class Kind { Streams, Events, Graphs, Device, Physical, Host };
MUSA_CUDA_EXPORT void count_created(Kind kind, uint64_t handle);
MUSA_CUDA_EXPORT void count_destroyed(Kind kind, uint64_t handle);
// Keeps an object until a graph and everything made of it are destroyed: its copies, its instances, and graphs that
// contain or take it over. CUDA's way, a user object of the graph, makes each launch wait until the one before it is done.
MUSA_CUDA_EXPORT void keep_with_graph(uint64_t graph, std::shared_ptr<void> object);
MUSA_CUDA_EXPORT void extend_graph(uint64_t graph, uint64_t by);
MUSA_CUDA_EXPORT void count_allocated(Kind kind, uint64_t handle, std::size_t bytes);
MUSA_CUDA_EXPORT void count_freed(Kind kind, uint64_t handle);

template <class T>
void created(Kind kind, const T& handle) {
  count_created(kind, (uint64_t)handle);
}
template <class T, class U>
void derived(Kind kind, const T& handle, const U& of) {
  count_created(kind, (uint64_t)handle);
  extend_graph((uint64_t)handle, (uint64_t)of);
}
template <class T, class U>
void extended(Kind, const T& handle, const U& by) {
  extend_graph((uint64_t)handle, (uint64_t)by);
}
template <class T>
void destroyed(Kind kind, const T& handle) {
  count_destroyed(kind, (uint64_t)handle);
}
template <class T>
void allocated(Kind kind, const T& handle, std::size_t bytes) {
  count_allocated(kind, (uint64_t)handle, bytes);
}
template <class T>
void freed(Kind kind, const T& handle) {
  count_freed(kind, (uint64_t)handle);
}

inline void enter(Entry& entry) {
  entry.calls.fetch_add(1, std::memory_order_relaxed);
  if (!environment_is_read.load(std::memory_order_acquire)) [[unlikely]] {
    read_environment();
  }
}

// A call that has no error code, or that returns a stored one.
template <class F>
auto count(Entry& entry, const F& function) {
  enter(entry);
  return function();
}

// Whether errors of a library stay for musaGetLastError: those of the runtime do, the driver's do not.
enum class Errors { Stay, Pass };

// A call that returns an error code, 0 for success; `after` follows a success.
template <class Result, Errors errors, class F, class After>
Result call(Entry& entry, const F& function, const After& after) {
  enter(entry);
  if (faults_are_set.load(std::memory_order_relaxed)) [[unlikely]] {
    if (const int code = next_fault(entry)) {
      if (entry.kind == kRelease && static_cast<int>(function()) == 0) {
        after();
      }
      if constexpr (errors == Errors::Stay) {
        injected_error() = code;
      }
      return static_cast<Result>(code);
    }
  }
  const Result result = function();
  if (static_cast<int>(result) == 0) {
    after();
  }
  return result;
}
template <class Result, Errors errors, class F>
Result call(Entry& entry, const F& function) {
  return call<Result, errors>(entry, function, [] {});
}

} // namespace musa_cuda
