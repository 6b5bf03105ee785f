// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "replay_scope.h"

#include <c10/core/GradMode.h>
#include <musa_runtime/host/fallback.h>

namespace musa_ops_host {

ReplayScope::ReplayScope()
    : exclude_(musa_runtime::excluded_from_host_kernels()),
      grad_mode_before_(c10::GradMode::is_enabled()),
      allocations_before_(cpu_allocations) {
  c10::GradMode::set_enabled(false);
  cpu_allocations = CpuMemory::Offered;
  offer_memory({});
}

ReplayScope::~ReplayScope() {
  c10::GradMode::set_enabled(grad_mode_before_);
  cpu_allocations = allocations_before_;
  offer_memory({});
}

} // namespace musa_ops_host
