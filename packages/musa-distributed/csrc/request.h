// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A call that the process group passes to the launcher: its tensors, and a function that makes the MCCL calls.
#pragma once

#include <ATen/core/Tensor.h>
#include <mccl.h>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <functional>
#include <vector>

#include "operation.h"

namespace c10d::mccl {

struct Request {
  OpType type;
  Title title;
  std::vector<at::Tensor> inputs, outputs;
  std::chrono::milliseconds timeout = kUnsetTimeout;
  bool async = true;
  int peer = -1; // for send and recv
  c10::Device device = c10::Device(c10::kPrivateUse1, -1);
  // Makes the MCCL calls, all on this communicator and stream; `peer` is the rank within the communicator.
  std::function<void(mcclComm_t comm, musaStream_t stream, int peer)> call;
  // torch operators to enqueue on the same stream before and after, and tensors that must live until the call has
  // finished.
  std::function<void()> before, after;
  std::vector<at::Tensor> scratch;
};

} // namespace c10d::mccl
