// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Plan of a pointwise launch: the properties of a TensorIterator that pointwise.muh selects a kernel by.
#pragma once

#include <ATen/native/TensorIterator.h>
#include <c10/musa/MUSAStream.h>
#include <c10/util/FunctionRef.h>

#include <cstdint>

#include "engines/vector.h"

namespace musa_ops_ported {

inline constexpr int kThreads = 128;
inline constexpr int kRounds = 4; // vector loads per thread
inline constexpr int kPerDenseBlock = kThreads * kVector * kRounds;
inline constexpr int kStridedItems = 8; // elements per thread in the strided kernel
inline constexpr int kMaxOperands = 6;

// Addresses and dtypes of the operands, and the kernel that they need.
struct PointwisePlan {
  uint32_t count = 0;
  int blocks = 0;
  char* data[kMaxOperands] = {};
  at::ScalarType dtype[kMaxOperands] = {};
  uint32_t numbers = 0; // a bit for each operand that is a host scalar
  bool dense = false; // same element order, no gaps, and the dtypes of the function
  bool vectors = false; // full blocks load kVector elements at once
  bool cast = false;
  uint32_t per_block = 0; // elements per block
};

using LaunchPointwise =
    c10::function_ref<void(const at::TensorIteratorBase&, const PointwisePlan&, c10::musa::MUSAStream)>;

// Calls `launch` with a plan for each piece of the iterator that fits 32-bit indices. expected: the dtypes of the
// function's result and parameters. Not a template, so that it is compiled once for all functions.
void run_pointwise(at::TensorIteratorBase& iter, const at::ScalarType* expected, int operands, LaunchPointwise launch);

} // namespace musa_ops_ported
