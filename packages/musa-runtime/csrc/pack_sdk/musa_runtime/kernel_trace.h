// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/Device.h>
#include <c10/musa/MUSAMacros.h>
#include <c10/musa/MUSAStream.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

// Profiler records of kernels that run on the host, on device memory: the SDK does not record them, so they record
// themselves. While it is off, it costs one branch per kernel.

namespace musa_runtime {

// One kernel. Times are nanoseconds since the Unix epoch, as the SDK's activity records and torch's traces have them.
struct TracedKernel {
  std::string name; // of the operator; empty if `counter` identifies it
  int64_t start = 0;
  int64_t end = 0;
  c10::DeviceIndex device = 0;
  uint64_t stream = 0;     // the SDK's number of it
  uint64_t operation = 0;  // torch's correlation id of the operator that ran it; 0: none
  uint64_t annotation = 0; // of the innermost range that the user marked; 0: none
  const std::atomic<uint64_t>* counter =
      nullptr; // of the operator's calls: OpRegistry::names_by_counter() has its name
};

C10_MUSA_API extern std::atomic<bool> kernel_tracing_on;

inline bool kernel_tracing() { return kernel_tracing_on.load(std::memory_order_relaxed); }

// Used by the profiler. stop_kernel_tracing returns the kernels since start_kernel_tracing.
C10_MUSA_API void start_kernel_tracing();
C10_MUSA_API std::vector<TracedKernel> stop_kernel_tracing();

// The operators and ranges that this thread is in. The profiler updates them as torch opens and closes them.
enum class CorrelationKind : uint8_t { Operation, Annotation };
C10_MUSA_API void push_correlation(CorrelationKind kind, uint64_t id);
C10_MUSA_API void pop_correlation(CorrelationKind kind);
C10_MUSA_API uint64_t innermost_correlation(CorrelationKind kind); // 0: none

// Called by kernels. begin: returns the start time, or 0 inside another kernel of this thread, which then represents both.
// end: `counter` and `name` identify the operator, and each may be null.
C10_MUSA_API int64_t begin_traced_kernel();
C10_MUSA_API void end_traced_kernel(
    int64_t start, const std::atomic<uint64_t>* counter, const char* name, c10::DeviceIndex device) noexcept;

// For kernels that run where SDK calls are not allowed (a host function of a stream): the caller measures the times and has
// queried the stream's number before.
C10_MUSA_API uint64_t traced_stream(const c10::musa::MUSAStream& stream);
C10_MUSA_API void report_traced_kernel(TracedKernel kernel) noexcept;

} // namespace musa_runtime
