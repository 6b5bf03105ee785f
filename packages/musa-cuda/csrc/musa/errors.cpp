// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Errors in the SDK's spelling.
#include "musa/support.h"

#include <mutex>
#include <string>
#include <unordered_map>

namespace musa_cuda::by_hand {

MUresult muGetErrorName(MUresult error, const char** text) {
  switch (static_cast<int>(error)) {
#define MUSA_CUDA_NAME(name) \
  case name: *text = #name; return MUSA_SUCCESS;
#include "musa_errors.inc"
#undef MUSA_CUDA_NAME
    default: *text = nullptr; return MUSA_ERROR_INVALID_VALUE;
  }
}

// The runtime has the same texts, also without a driver.
MUresult muGetErrorString(MUresult error, const char** text) {
  const char* name = nullptr;
  if (by_hand::muGetErrorName(error, &name) != MUSA_SUCCESS) {
    *text = nullptr;
    return MUSA_ERROR_INVALID_VALUE;
  }
  static std::mutex mutex;
  static auto* const texts = new std::unordered_map<int, std::string>;
  const std::lock_guard lock(mutex);
  std::string& kept = (*texts)[static_cast<int>(error)];
  if (kept.empty()) {
    kept = cudaGetErrorString(static_cast<cudaError_t>(error));
    for (size_t at = kept.find("CUDA"); at != std::string::npos; at = kept.find("CUDA", at + 4)) {
      kept.replace(at, 4, "MUSA");
    }
  }
  *text = kept.c_str();
  return MUSA_SUCCESS;
}

} // namespace musa_cuda::by_hand
