// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Wrapper around every operation: fault injection, checks with their reasons, and the log. The backend defines how a
// task is enqueued on the stream.
//
//   Status Unary::Run(Handle& handle, Tensor& out, const Tensor& in) const {
//     return call<"musa::dnn::Unary::Run">(handle, {&out, &in}, [&](Call& call) {
//       if (!call.require(same_shape(out, in), Status::INVALID_PARAMETER, "out and in differ in shape")) {
//         return call.status();
//       }
//       return call.enqueue([=, mode = mode_] { ... });
//     });
//   }
#pragma once

#include <initializer_list>

#include "support/access.h"

namespace musa_emulator::dnn {

using musa::dnn::Handle;
using musa::dnn::Status;
using musa::dnn::Tensor;

const char* name_of(Status status);
// Returns the status for an injected or real error of the runtime.
Status status_of(musaError_t error);

// The checks and the log of a call.
class Checks {
 public:
  Checks(const char* name, const Handle& handle, std::initializer_list<const Tensor*> tensors)
      : name_(name), handle_(handle), tensors_(tensors) {}

  // Stores and logs the first failed check. The requirements of all operands have been checked before.
  bool require(bool condition, Status status, const char* reason) {
    if (condition) [[likely]] {
      return true;
    }
    refuse(status, reason);
    return false;
  }
  Status status() const { return status_; }

  // Checks each operand: at most 8 dimensions, not empty, memory on the handle's device. Returns false if a check
  // fails.
  bool accept_operands();
  void log() const;

 protected:
  // Allocates the workspace of the call; returns nullptr if none is needed or a check fails.
  musa::dnn::MemoryHandler take(const musa::dnn::MemoryMaintainer& maintainer, size_t bytes, bool optional);

  const char* name_;
  const Handle& handle_;
  std::initializer_list<const Tensor*> tensors_;
  Status status_ = Status::SUCCESS;

 private:
  void refuse(Status status, const char* reason);
};

// Whether calls are logged: MUDNN_LOG_LEVEL=INFO.
bool logs_calls();

} // namespace musa_emulator::dnn

// Defines class Call, derived from Checks, and call().
#include <mudnn_backend/call.h>
