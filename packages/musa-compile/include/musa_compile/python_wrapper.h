// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

// Included by the C++ wrappers of torch.compile (config.cpp_wrapper), which are Python extension modules.
#include <torch/csrc/inductor/cpp_wrapper/common.h>

#include "host_kernel.h"

namespace musa_compile {

// A kernel of a module that is called with the GIL held.
class PythonHostKernel : public HostKernel {
 public:
  PythonHostKernel(int32_t device, const char* name) : HostKernel(after_waiting(device), name) {}

 private:
  // Waits without the GIL, because the pending work may be a function in Python.
  static int32_t after_waiting(int32_t device) {
    int32_t idle = 0;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_musa_stream_idle(device, &idle));
    if (idle == 0) [[unlikely]] {
      const pybind11::gil_scoped_release_simple released;
      AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_musa_synchronize_stream(device));
    }
    return device;
  }
};

} // namespace musa_compile
