// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Device memory as tensors for torch's CPU functions.
#pragma once

#include <ATen/core/Tensor.h>

#include <mudnn_backend/device.h>

#include "support/access.h"

namespace musa_emulator::dnn {

using musa::dnn::Tensor;

c10::ScalarType scalar_type(Tensor::Type type);

// Returns a tensor that aliases the memory, with dimensions in the given order. Undefined for an absent operand.
at::Tensor alias(const Tensor& tensor);
// The same with dimensions in torch's order, N, C, then space with the outermost dimension first, for every format.
at::Tensor alias_channels_second(const Tensor& tensor);
// The same for memory without a descriptor.
at::Tensor alias_memory(void* address, c10::ScalarType type, c10::IntArrayRef sizes, c10::IntArrayRef strides);

// Returns the tensors that alias() creates within its lifetime to the thread's stock at its end, unless they are still
// referenced. Creating a tensor takes several allocations, which is longer than a task on small tensors.
class AliasScope {
 public:
  AliasScope();
  ~AliasScope();
  AliasScope(const AliasScope&) = delete;
  AliasScope& operator=(const AliasScope&) = delete;

  class Stock;

 private:
  static Stock& stock(); // of the calling thread

  Stock& stock_;
  const size_t before_; // number of tensors in use when the scope began
};

// Describes the memory as integers of the same size, for operations that only move elements: torch's functions support
// integers of every size, but not every type of muDNN.
Tensor as_bits(const Tensor& tensor);

// Like alias(), for tasks that keep no reference to their tensors: saves a reference count, which is two atomic operations.
// The thread's stock owns the tensor, which is valid until the end of the task.
at::Tensor& lent_alias(const Tensor& tensor);

} // namespace musa_emulator::dnn
