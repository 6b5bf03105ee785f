// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Accounting of memory pools for musaFree, which also frees pool allocations.
#pragma once

namespace musa_emulator {

// Does nothing if the memory does not belong to a pool.
void forget_pool_allocation(void* pointer);

} // namespace musa_emulator
