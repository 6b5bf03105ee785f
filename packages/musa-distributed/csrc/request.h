// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// What a method of the process group has the launcher do: on which tensors, and by which calls of MCCL.
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
  int peer = -1; // of send and recv
  c10::Device device = c10::Device(c10::kPrivateUse1, -1);
  // Calls of MCCL, all for this communicator and stream; the peer is the rank there.
  std::function<void(mcclComm_t comm, musaStream_t stream, int peer)> call;
  // What goes with it on the stream, as operators of torch; tensors that live until the call has ended.
  std::function<void()> before, after;
  std::vector<at::Tensor> scratch;
};

} // namespace c10d::mccl
