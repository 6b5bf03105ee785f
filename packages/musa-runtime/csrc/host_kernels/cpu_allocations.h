// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/DispatchKeySet.h>

#include <cstddef>
#include <cstdint>
#include <span>

// CPU allocations while torch's CPU kernels run on device memory.

namespace musa_runtime {

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

// Registers the CPU allocator that implements the above and forwards to torch's own otherwise. Called once, at
// initialisation, on devices with host-addressable memory.
void install_scoped_cpu_allocator();

// Dispatch keys that are excluded while torch's CPU kernels run. Autograd is handled above them, and a CPU autocast region
// affects only the program's CPU tensors.
inline c10::DispatchKeySet excluded_from_host_kernels() {
  return c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::DispatchKeySet(c10::DispatchKey::AutocastCPU);
}

} // namespace musa_runtime
