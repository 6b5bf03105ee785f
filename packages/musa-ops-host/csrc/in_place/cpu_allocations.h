// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

// CPU allocations while torch's CPU kernels run on device memory.

namespace musa_ops_host {

// The source of a thread's CPU allocations: torch's allocator, the device's memory while a native kernel runs on it, or the
// memory offered to a recorded call for its results (torch's allocator if none fits).
enum class CpuMemory : uint8_t { Host, Device, Offered };
extern constinit thread_local CpuMemory cpu_allocations;

// Memory for a recorded call's result. The call's first CPU allocation of that size gets it, so that a kernel that
// allocates its result fills the right memory without a copy.
struct OfferedMemory {
  void* data;
  size_t nbytes;
};
// Sets the memory for this thread's later allocations of CpuMemory::Offered; used entries are cleared. The list must
// outlive the next offer.
void offer_memory(std::span<OfferedMemory> memory);

// Between these calls a graph owns the address: code that allocated it as raw memory, and frees it by address alone, does
// not free it. Counted.
void begin_graph_use(void* data);
void end_graph_use(void* data);

// Registers the CPU allocator that implements the above and forwards to torch's own otherwise. Called before the above is used;
// only the first call has an effect.
void install_scoped_cpu_allocator();

} // namespace musa_ops_host
