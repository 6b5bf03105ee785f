// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <musa.h>

#include "support/forward.h"
#include "support/hooks.h"

namespace musa_cuda {

// A function of CUDA's driver, which the runtime finds: libmusa loads on machines without a driver.
template <class F>
F* driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &found, CUDART_VERSION, cudaEnableDefault, &result);
  return error == cudaSuccess && result == cudaDriverEntryPointSuccess ? reinterpret_cast<F*>(found) : nullptr;
}

// The result of a call where the driver does not have the function.
inline MUresult without_driver() {
  int version = 0;
  return cudaDriverGetVersion(&version) != cudaSuccess || version == 0 ? MUSA_ERROR_STUB_LIBRARY
                                                                       : MUSA_ERROR_NOT_SUPPORTED;
}

// cuda.h adds _v2 to some names. The driver takes the name without it and returns the newest version, whose type cuda.h declares.
#define MUSA_CUDA_DRIVER(function) \
  [] { \
    static auto* const found = musa_cuda::driver_function<decltype(function)>(#function); \
    return found; \
  }()

template <class Result, class R, class... Parameters, class... Arguments>
inline Result forward_to_driver(R (*function)(Parameters...), Arguments... arguments) {
  return function == nullptr ? without_driver() : forward<Result>(function, arguments...);
}

} // namespace musa_cuda
