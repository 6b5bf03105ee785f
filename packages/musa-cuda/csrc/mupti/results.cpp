// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Error codes, and the version.
#include <activity_buffers.h>

#include "mupti/support.h"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <mutex>
#include <set>

namespace musa_cuda {
namespace {

void report(CUptiResult result) {
  static std::mutex mutex;
  static auto* const reported = new std::set<CUptiResult>;
  const std::lock_guard lock(mutex);
  const char* name = nullptr;
  if (reported->insert(result).second && cuptiGetResultString(result, &name) == CUPTI_SUCCESS) {
    std::fprintf(
        stderr, "musa-cuda: CUPTI returned %s, which MUPTI has no error code for: MUPTI_ERROR_UNKNOWN\n", name);
  }
}

bool has_driver() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess && version != 0;
}

} // namespace

MUptiResult status(CUptiResult result) {
#define MUPTI_CUDA_SAME(code) \
  static_assert((int)MUPTI_##code == (int)CUPTI_##code); \
  case CUPTI_##code
  switch (result) {
    MUPTI_CUDA_SAME(SUCCESS)
        : MUPTI_CUDA_SAME(ERROR_INVALID_PARAMETER)
        : MUPTI_CUDA_SAME(ERROR_INVALID_DEVICE)
        : MUPTI_CUDA_SAME(ERROR_INVALID_CONTEXT)
        : MUPTI_CUDA_SAME(ERROR_INVALID_OPERATION)
        : MUPTI_CUDA_SAME(ERROR_OUT_OF_MEMORY)
        : MUPTI_CUDA_SAME(ERROR_MAX_LIMIT_REACHED)
        : MUPTI_CUDA_SAME(ERROR_NOT_COMPATIBLE)
        : MUPTI_CUDA_SAME(ERROR_NOT_INITIALIZED)
        : MUPTI_CUDA_SAME(ERROR_QUEUE_EMPTY)
        : MUPTI_CUDA_SAME(ERROR_INVALID_KIND)
        : MUPTI_CUDA_SAME(ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) : return static_cast<MUptiResult>(result);
    MUPTI_CUDA_SAME(ERROR_UNKNOWN)
        : // also of every call without a driver
          return has_driver()
          ? MUPTI_ERROR_UNKNOWN
          : MUPTI_ERROR_NOT_INITIALIZED;
    case CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT:
    case CUPTI_ERROR_INVALID_HANDLE:
    case CUPTI_ERROR_INVALID_STREAM: return MUPTI_ERROR_INVALID_PARAMETER;
    default: report(result); return MUPTI_ERROR_UNKNOWN;
  }
#undef MUPTI_CUDA_SAME
}

} // namespace musa_cuda

namespace musa_cuda::by_hand {

MUptiResult muptiGetResultString(MUptiResult result, const char** text) {
  return mupti_buffers::result_string(result, text);
}

MUptiResult muptiGetVersion(uint32_t* version) { return mupti_buffers::api_version(version); }

} // namespace musa_cuda::by_hand
