// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <musa_runtime/host/fallback.h>

#include <utility>

namespace musa_ops_math {

/// Calls the runtime's fallback for an operator whose kernel of a layout declines the arguments.
///
///     return declined<Tensor&, const Tensor&, Tensor&>(c10::DispatchKey::SparsePrivateUse1, "aten::add", "out", self, out);
template <typename Return, typename... Args>
Return declined(c10::DispatchKey key, const char* name, const char* overload, Args... args) {
  const c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
  return c10::KernelFunction::makeFromBoxedFunction<&musa_runtime::serve_without_pack>().call<Return, Args...>(
      op, c10::DispatchKeySet(key), std::forward<Args>(args)...);
}

} // namespace musa_ops_math
