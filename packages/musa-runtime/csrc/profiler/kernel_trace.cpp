// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <musa_runtime/kernel_trace.h>

#include <c10/musa/MUSAStream.h>
#include <c10/util/ApproximateClock.h>

#include <dlfcn.h>

#include <array>
#include <mutex>
#include <utility>

namespace musa_runtime {
namespace {

struct Collected {
  std::mutex mutex; // guards kernels; a leaf lock
  std::vector<TracedKernel> kernels;
};

Collected& collected() {
  static Collected& instance = *new Collected();
  return instance;
}

struct ThreadTrace {
  std::array<std::vector<uint64_t>, 2> correlations; // by CorrelationKind
  bool in_kernel = false;
  uint64_t operation = 0; // when the kernel began: a kernel of torch may call further operators
  uint64_t annotation = 0;
};
thread_local ThreadTrace this_thread;

void keep(TracedKernel kernel) {
  Collected& all = collected();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.kernels.push_back(std::move(kernel));
}

} // namespace

std::atomic<bool> kernel_tracing_on{false};

void start_kernel_tracing() {
  Collected& all = collected();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.kernels.clear();
  kernel_tracing_on.store(true, std::memory_order_relaxed);
}

std::vector<TracedKernel> stop_kernel_tracing() {
  kernel_tracing_on.store(false, std::memory_order_relaxed);
  Collected& all = collected();
  std::lock_guard<std::mutex> lock(all.mutex);
  return std::exchange(all.kernels, {});
}

void push_correlation(CorrelationKind kind, uint64_t id) {
  this_thread.correlations[static_cast<size_t>(kind)].push_back(id);
}

void pop_correlation(CorrelationKind kind) {
  // A range may have been opened before the profiler started.
  std::vector<uint64_t>& ids = this_thread.correlations[static_cast<size_t>(kind)];
  if (!ids.empty()) {
    ids.pop_back();
  }
}

uint64_t innermost_correlation(CorrelationKind kind) {
  const std::vector<uint64_t>& ids = this_thread.correlations[static_cast<size_t>(kind)];
  return ids.empty() ? 0 : ids.back();
}

int64_t begin_traced_kernel() {
  if (this_thread.in_kernel) {
    return 0;
  }
  this_thread.in_kernel = true;
  this_thread.operation = innermost_correlation(CorrelationKind::Operation);
  this_thread.annotation = innermost_correlation(CorrelationKind::Annotation);
  return c10::getTime();
}

void end_traced_kernel(
    int64_t start, const std::atomic<uint64_t>* counter, const char* name, c10::DeviceIndex device) noexcept {
  TracedKernel kernel;
  kernel.end = c10::getTime();
  kernel.start = start;
  this_thread.in_kernel = false;
  kernel.device = device;
  kernel.operation = this_thread.operation;
  kernel.annotation = this_thread.annotation;
  kernel.counter = counter;
  // A kernel's destructor must not throw: a record that cannot be made is left out.
  try {
    if (name != nullptr) {
      kernel.name = name;
    }
    kernel.stream = traced_stream(c10::musa::getCurrentMUSAStream(device));
    keep(std::move(kernel));
  } catch (const std::exception& error) {
    TORCH_WARN_ONCE("A kernel is missing in the profile: ", error.what());
  }
}

// Looked up by name: a label must not prevent the runtime from loading with an SDK without this call.
uint64_t traced_stream(const c10::musa::MUSAStream& stream) {
  using GetId = musaError_t (*)(musaStream_t, unsigned long long*);
  static const auto get_id = reinterpret_cast<GetId>(dlsym(RTLD_DEFAULT, "musaStreamGetId"));
  unsigned long long number = 0;
  if (get_id != nullptr && get_id(stream.stream(), &number) == musaSuccess) {
    return number;
  }
  if (get_id != nullptr) {
    (void)musaGetLastError();
  }
  return static_cast<uint64_t>(stream.id());
}

void report_traced_kernel(TracedKernel kernel) noexcept {
  try {
    keep(std::move(kernel));
  } catch (const std::exception& error) {
    TORCH_WARN_ONCE("A kernel is missing in the profile: ", error.what());
  }
}

} // namespace musa_runtime
