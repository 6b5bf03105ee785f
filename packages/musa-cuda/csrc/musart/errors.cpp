// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Errors in the SDK's spelling, and the errors that tests inject.
#include "musart/support.h"

#include <mutex>
#include <string>
#include <unordered_map>

namespace musa_cuda::by_hand {
namespace {

musaError_t taken(int& error) {
  const auto code = static_cast<musaError_t>(error);
  error = 0;
  return code;
}

} // namespace

musaError_t musaGetLastError() {
  const musaError_t last = status(cudaGetLastError());
  if (!faults_were_set.load(std::memory_order_relaxed)) {
    return last; // every launch is checked, and the variable of the thread takes time to read
  }
  const musaError_t injected = taken(injected_error());
  return injected != musaSuccess ? injected : last;
}
musaError_t musaPeekAtLastError() {
  const int injected = injected_error();
  return injected != 0 ? static_cast<musaError_t>(injected) : status(cudaPeekAtLastError());
}

const char* musaGetErrorName(musaError_t error) {
  switch (static_cast<int>(error)) {
#define MUSA_CUDA_NAME(name) \
  case name: return #name;
#include "musart_errors.inc"
#undef MUSA_CUDA_NAME
    default: return "unrecognized error code";
  }
}

// CUDA's text, which names CUDA.
const char* musaGetErrorString(musaError_t error) {
  static std::mutex mutex;
  static auto* const texts = new std::unordered_map<int, std::string>; // the caller may keep a text to the end
  const std::lock_guard lock(mutex);
  std::string& text = (*texts)[static_cast<int>(error)];
  if (text.empty()) {
    text = cudaGetErrorString(static_cast<cudaError_t>(error));
    for (const auto& [cuda, musa] : {std::pair("CUDA", "MUSA"), std::pair("cuda", "musa"), std::pair("Cuda", "Musa")}) {
      for (size_t at = text.find(cuda); at != std::string::npos; at = text.find(cuda, at + 4)) {
        text.replace(at, 4, musa);
      }
    }
  }
  return text.c_str();
}

} // namespace musa_cuda::by_hand
