// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <span>

// The thread's state while recorded calls run from a host node of a graph: on any thread, which may have run nothing of
// torch before, and without a call to the SDK, which host functions may not make.

namespace musa_runtime {

// Memory that a recorded call's result is to have. The call's first CPU allocation of that size gets it, so that a kernel
// that makes its result fills the right memory, and nothing is copied.
struct OfferedMemory {
  void* data;
  size_t nbytes;
};

// Between these the address is some graph's: code that allocates it as raw memory, and gives it back by address alone, does
// not free it. Counted.
void begin_lending(void* data);
void end_lending(void* data);

class ReplayScope {
 public:
  ReplayScope();
  ~ReplayScope();
  ReplayScope(const ReplayScope&) = delete;
  ReplayScope& operator=(const ReplayScope&) = delete;

  // For the allocations from here on; taken ones are cleared. The list outlives the scope or the next offer.
  void offer(std::span<OfferedMemory> memory);

 private:
  c10::impl::ExcludeDispatchKeyGuard exclude_;
  bool grad_mode_before_;
  int routing_before_;
};

// How far a native random operator advances the offset. One counter block per call keeps calls apart; within a call the CPU
// engine makes its own long sequence.
constexpr uint64_t kDrawnPerCall = 4;

// The seed of the CPU generator that makes the numbers of a musa generator's seed and offset.
uint64_t host_seed(uint64_t seed, uint64_t offset);

} // namespace musa_runtime
