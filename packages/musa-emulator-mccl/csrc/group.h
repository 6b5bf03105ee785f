// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// mcclGroupStart and mcclGroupEnd: the calls that a thread makes between them start together at the end.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "operation.h"

namespace musa_emulator::mccl {

struct Issued {
  std::shared_ptr<Communicator> comm;
  Stream* stream;
  Signature signature;
  std::shared_ptr<Launch> collective; // null if a transfer
  void* memory;                       // the transfer's buffer
};

class Group {
 public:
  static Group& of_this_thread();

  void start() { ++depth_; }
  // Returns mcclInvalidUsage if no group is open.
  mcclResult_t end();

  // Runs the call immediately if no group is open.
  mcclResult_t add(Issued call);
  // Adds a call that blocks until other ranks make theirs, possibly on this thread.
  mcclResult_t add(std::function<mcclResult_t()> joins);
  // Records that a call of the group was refused: end() then returns `result` and starts nothing.
  mcclResult_t refused(mcclResult_t result);

 private:
  mcclResult_t launch();

  int depth_ = 0;
  mcclResult_t refused_ = mcclSuccess;
  std::vector<Issued> calls_;
  std::vector<std::function<mcclResult_t()>> joins_;
};

// Converts a runtime error to a result of MCCL.
mcclResult_t result_of(musaError_t status);

} // namespace musa_emulator::mccl
