// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include "device_shims.h"
#include "operator_shims.h"
#include <torch/csrc/inductor/aoti_runtime/utils.h>

namespace musa_compile {

// Scope around each kernel call on the calling thread; constructed by generated code.
class HostKernel {
 public:
  HostKernel(int32_t device, const char* name) : device_(device), name_(name) {
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_musa_begin_host_kernel(device, &start_));
  }
  ~HostKernel() {
    if (start_ != -1) [[unlikely]] {
      aoti_torch_musa_end_host_kernel(start_, name_, device_);
    }
  }
  HostKernel(const HostKernel&) = delete;
  HostKernel& operator=(const HostKernel&) = delete;

 private:
  int64_t start_ = -1;
  int32_t device_;
  const char* name_;
};

} // namespace musa_compile
