// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <musa_runtime/host/fallback.h>

namespace musa_ops_host {

// Serves an operator that no pack declares a kernel for: in the memory of its operands, or recorded if a graph is captured.
void call_boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack);

} // namespace musa_ops_host
