// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// What pointwise.muh asks about an iterator before it launches.
#pragma once

#include <ATen/native/TensorIterator.h>
#include <c10/musa/MUSAStream.h>
#include <c10/util/FunctionRef.h>

#include <cstdint>

#include "engines/vector.h"

namespace musa_ops_ported {

inline constexpr int kThreads = 128;
inline constexpr int kRounds = 4; // such loads of a thread
inline constexpr int kPerDenseBlock = kThreads * kVector * kRounds;
inline constexpr int kStridedItems = 8; // elements of a thread where strides are looked up
inline constexpr int kMaxOperands = 6;

// Where the operands lie, what they hold, and which of the two kernels they need.
struct PointwisePlan {
  int count = 0;
  int blocks = 0;
  char* data[kMaxOperands] = {};
  at::ScalarType dtype[kMaxOperands] = {};
  uint32_t numbers = 0; // a bit for each operand that is a number on the host
  bool dense = false; // same order of elements, no gaps, and the dtypes that the function takes
  bool vectors = false; // whole blocks load kVector elements at once
  bool cast = false;
  int per_block = 0; // elements of a block
};

using LaunchPointwise = c10::function_ref<void(const at::TensorIteratorBase&, const PointwisePlan&, c10::musa::MUSAStream)>;

// Calls `launch` with each piece of the iterator that is small enough for 32-bit indices, and its plan. expected: the dtypes
// of the function's result and parameters. Out of line: nothing here depends on the function.
void run_pointwise(at::TensorIteratorBase& iter, const at::ScalarType* expected, int operands, LaunchPointwise launch);

} // namespace musa_ops_ported
