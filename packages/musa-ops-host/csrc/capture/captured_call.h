// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>

// Replaces native kernels while a graph is captured. A native kernel is host code on the calling thread, so the SDK cannot
// record it, and running it at capture would change memory that a capture must not change. Instead the call is recorded:
// results get their shapes from the operator's meta kernel and their memory from the graph's pool, and a host node that
// makes the call on that memory is added to the graph.

namespace musa_ops_host {

// A boxed kernel that records the call of its operator.
const c10::KernelFunction& recording_kernel();

// Records a call with the arguments on the stack, and replaces them by its results. Raises NotImplementedError, and records
// nothing, if torch's CPU kernel does not support the dtypes of the operands.
void record_call(const c10::OperatorHandle& op, torch::jit::Stack* stack);

} // namespace musa_ops_host
