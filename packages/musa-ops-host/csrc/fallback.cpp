// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "fallback.h"

#include "capture/captured_call.h"
#include "in_place/host_scope.h"

#include <musa_runtime/graph_capture.h>

namespace musa_ops_host {

void call_boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (C10_UNLIKELY(musa_runtime::capturing())) {
    record_call(op, stack);
    return;
  }
  const std::string name = c10::toString(op.operator_name());
  HostScope scope;
  scope.set_name(name.c_str());
  musa_runtime::serve_on_host(op, stack, scope, "host");
}

} // namespace musa_ops_host
