// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// mcclGroupStart and mcclGroupEnd: what a thread calls in between starts together at the end.
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
  std::shared_ptr<Launch> collective; // null for a transfer
  void* memory;                       // of a transfer
};

class Group {
 public:
  static Group& of_this_thread();

  void start() { ++depth_; }
  // mcclInvalidUsage where no group is open.
  mcclResult_t end();

  // At once, where no group is open.
  mcclResult_t add(Issued call);
  // A call that blocks until other ranks make theirs, which may be this thread's too.
  mcclResult_t add(std::function<mcclResult_t()> joins);
  // A call of the group was refused: the group's end says so and starts nothing.
  mcclResult_t refused(mcclResult_t result);

 private:
  mcclResult_t launch();

  int depth_ = 0;
  mcclResult_t refused_ = mcclSuccess;
  std::vector<Issued> calls_;
  std::vector<std::function<mcclResult_t()>> joins_;
};

// What an error of the runtime is to a caller of MCCL.
mcclResult_t result_of(musaError_t status);

} // namespace musa_emulator::mccl
