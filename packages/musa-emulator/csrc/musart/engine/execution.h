// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Runs operations on the calling thread.
#pragma once

#include "engine/graph.h"
#include "engine/operation.h"

namespace musa_emulator {

// Runs any operation except records, which the scheduler handles under its lock. A failure is a sticky error of the
// device.
musaError_t execute(const Operation& operation);
musaError_t execute(Launch& launch);
// Limit for operations that run while the engine lock is held, which saves releasing and reacquiring it.
inline constexpr size_t kBriefBytes = 8 << 10;
bool is_brief(const Operation& operation);

void copy_box(const CopyOperation& copy);
void fill_box(const FillOperation& fill);
// Whether a device may access the operands now. Mappings may change between submission and execution.
bool may_run(const CopyOperation& copy);
bool may_run(const FillOperation& fill);

// Runs the nodes of a graph in order. `lost`: only its event records, for which others may wait.
musaError_t execute_graph(const GraphRun& run, bool lost);

} // namespace musa_emulator
