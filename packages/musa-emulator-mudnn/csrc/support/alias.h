// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Device memory as torch's CPU functions take it.
#pragma once

#include <ATen/core/Tensor.h>

#include <mudnn_backend/device.h>

#include "support/access.h"

namespace musa_emulator::dnn {

using musa::dnn::Tensor;

c10::ScalarType scalar_type(Tensor::Type type);

// The tensor's memory, dimensions in the order given. Undefined for an absent operand.
at::Tensor alias(const Tensor& tensor);
// The same in torch's order: N, C, then space from the outermost dimension in, whatever the format.
at::Tensor alias_channels_second(const Tensor& tensor);

// Tensors made by alias() within its life go back to the thread's stock at its end, unless somebody still holds them.
// Making one takes several allocations, and a task on small tensors is shorter than that.
class AliasScope {
 public:
  AliasScope();
  ~AliasScope();
  AliasScope(const AliasScope&) = delete;
  AliasScope& operator=(const AliasScope&) = delete;

  class Stock;

 private:
  static Stock& stock(); // the thread's

  Stock& stock_;
  const size_t before_; // tensors lent when the scope began
};

// The same memory as integers of the same size. What only moves elements need not know their type, and torch's
// functions take integers of every size, but not every type of muDNN.
Tensor as_bits(const Tensor& tensor);

} // namespace musa_emulator::dnn
