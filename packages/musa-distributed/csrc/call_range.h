// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Reports a call to profilers and execution traces as torch's other backends do: a range "record_param_comms" around
// the host's part of the call, with the group, the sequence number, and the tensors' sizes.
#pragma once

#include <ATen/record_function.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <memory>
#include <vector>

#include "group.h"
#include "request.h"

namespace c10d::mccl {

class CallRange {
 public:
  // Covers one request, or several of which `first` is one; the tensors are those of all requests. Nearly free while no
  // profiler is active.
  CallRange(
      const Group& group, const Launched& launched, const Request& first, const std::vector<at::Tensor>& inputs,
      const std::vector<at::Tensor>& outputs);

 private:
  void begin(
      const Group& group, const Launched& launched, const Request& first, const std::vector<at::Tensor>& inputs,
      const std::vector<at::Tensor>& outputs);

  std::unique_ptr<c10::DebugInfoGuard> parameters_;
  at::RecordFunction range_{at::RecordScope::FUNCTION};
};

} // namespace c10d::mccl
