// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// One call of muDNN: on which device and stream, with whose memory, and what its status means.
//
//   dnn::Softmax op;
//   check(op.SetDim(1), "Softmax::SetDim");
//   const OnDevice on(out);
//   dnn::Tensor result = describe(out);
//   check(op.Run(on.handle(), result, operand(self), on.workspace()), "Softmax::Run", {&out, &self});
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/musa/MUSAGuard.h>
#include <mudnn.h>

#include <initializer_list>

namespace musa_ops_mudnn {

namespace dnn = ::musa::dnn;

// Makes the tensor's device the current one while it lives: muDNN works on the current device, whatever the operands.
class OnDevice {
 public:
  explicit OnDevice(const at::Tensor& tensor);

  // This thread's handle for the device, on the device's current stream.
  dnn::Handle& handle() const {
    return handle_;
  }
  // Lends memory of the caching allocator in the order of the current stream.
  static dnn::MemoryMaintainer workspace();

 private:
  c10::musa::MUSAKernelGuard guard_;
  dnn::Handle& handle_;
};

[[noreturn]] void raise(dnn::Status status, const char* call, std::initializer_list<const at::Tensor*> tensors);

// Raises for anything but SUCCESS: OutOfMemoryError for memory, RuntimeError else, with the call, the shapes and the status.
inline void check(dnn::Status status, const char* call, std::initializer_list<const at::Tensor*> tensors = {}) {
  if (status != dnn::Status::SUCCESS) [[unlikely]] {
    raise(status, call, tensors);
  }
}

} // namespace musa_ops_mudnn
