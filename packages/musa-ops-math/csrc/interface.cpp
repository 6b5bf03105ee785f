// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/util/Exception.h>
#include <fft/plan_cache.h>

#include <string>

// The C interface of the library, for src/musa_ops_math/_library.py. Devices are checked by the caller.

#define MUSA_OPS_MATH_API extern "C" __attribute__((visibility("default")))

using musa_ops_math::fft::PlanCache;

MUSA_OPS_MATH_API int64_t musa_ops_math_plan_cache_size(int device) {
  return static_cast<int64_t>(PlanCache::of(static_cast<c10::DeviceIndex>(device)).size());
}

MUSA_OPS_MATH_API int64_t musa_ops_math_plan_cache_max_size(int device) {
  return static_cast<int64_t>(PlanCache::of(static_cast<c10::DeviceIndex>(device)).max_size());
}

namespace {

// The error of the last call on this thread that failed.
thread_local std::string failure;

template <typename Body>
const char* run(Body&& body) {
  try {
    body();
    return nullptr;
  } catch (const c10::Error& error) { // must not leave a C function
    failure = error.what_without_backtrace();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  return failure.c_str();
}

} // namespace

// Return nullptr, or the text of an error.
MUSA_OPS_MATH_API const char* musa_ops_math_set_plan_cache_max_size(int device, int64_t size) {
  return run([&] { PlanCache::of(static_cast<c10::DeviceIndex>(device)).set_max_size(static_cast<size_t>(size)); });
}

MUSA_OPS_MATH_API const char* musa_ops_math_clear_plan_cache(int device) {
  return run([&] { PlanCache::of(static_cast<c10::DeviceIndex>(device)).clear(); });
}
