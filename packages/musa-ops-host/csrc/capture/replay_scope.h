// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include "in_place/cpu_allocations.h"

#include <c10/core/impl/LocalDispatchKeySet.h>

// The thread's state while recorded calls run from a host node of a graph: on any thread, which may be new to torch, and
// without SDK calls, which host functions must not make.

namespace musa_ops_host {

class ReplayScope {
 public:
  ReplayScope();
  ~ReplayScope();
  ReplayScope(const ReplayScope&) = delete;
  ReplayScope& operator=(const ReplayScope&) = delete;

  // Offers memory to later allocations. The list must outlive the scope or the next offer.
  void offer(std::span<OfferedMemory> memory) { offer_memory(memory); }

 private:
  c10::impl::ExcludeDispatchKeyGuard exclude_;
  bool grad_mode_before_;
  CpuMemory allocations_before_;
};

} // namespace musa_ops_host
