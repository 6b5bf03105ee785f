// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The frame around every operation: injected faults, checks with their reasons, the log. How a task gets on the stream is the
// backend's.
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
// The status that an injected or real error of the runtime becomes.
Status status_of(musaError_t error);

// What is checked of a call, and its log.
class Checks {
 public:
  Checks(const char* name, const Handle& handle, std::initializer_list<const Tensor*> tensors)
      : name_(name), handle_(handle), tensors_(tensors) {}

  // Keeps and logs the first refusal. What is required of all operands has been checked before.
  bool require(bool condition, Status status, const char* reason) {
    if (condition) [[likely]] {
      return true;
    }
    refuse(status, reason);
    return false;
  }
  Status status() const { return status_; }

  // Of all operands: at most 8 dimensions, elements, memory, on the handle's device. False after a refusal.
  bool accept_operands();
  void log() const;

 protected:
  // The caller's memory for the time of the call; null where none is needed, and after a refusal.
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

// class Call, derived from Checks, and call().
#include <mudnn_backend/call.h>
