// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <host_kernels/cpu_allocations.h>

// The thread's state while recorded calls run from a host node of a graph: on any thread, which may have run nothing of
// torch before, and without a call to the SDK, which host functions may not make.

namespace musa_runtime {

class ReplayScope {
 public:
  ReplayScope();
  ~ReplayScope();
  ReplayScope(const ReplayScope&) = delete;
  ReplayScope& operator=(const ReplayScope&) = delete;

  // Offers memory to the allocations from here on. The list outlives the scope or the next offer.
  void offer(std::span<OfferedMemory> memory) {
    offer_memory(memory);
  }

 private:
  c10::impl::ExcludeDispatchKeyGuard exclude_;
  bool grad_mode_before_;
  CpuMemory allocations_before_;
};

} // namespace musa_runtime
