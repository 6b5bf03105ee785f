// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Accounts of memory pools, for musaFree, which takes their allocations too.
#pragma once

namespace musa_emulator {

// Does nothing for memory that is of no pool.
void forget_pool_allocation(void* pointer);

} // namespace musa_emulator
