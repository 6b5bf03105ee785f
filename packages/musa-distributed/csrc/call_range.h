// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// What profilers and execution traces learn of a call, as torch's other backends tell it: a range "record_param_comms" around
// the host's part, with the group, the sequence number, and what is sent.
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
  // Of one request or of several, of which `first` is one; the tensors are those of all. Costs next to nothing where nobody
  // listens.
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
