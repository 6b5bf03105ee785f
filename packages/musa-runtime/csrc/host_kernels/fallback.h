// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <c10/musa/MUSAMacros.h>

#include <functional>
#include <string>
#include <vector>

// The boxed kernels for every operator that no candidate serves, for all layouts: `host` (torch's CPU kernel on aliased
// device memory) and `host-copy` (copy to the host, compute, copy back).

namespace musa_runtime {

// which: "host" or "host-copy".
c10::KernelFunction fallback_kernel(const std::string& which);

// Registers the backend fallback for musa tensors of every layout. Idempotent.
void install_fallbacks();
// Selects the backend fallback for operators without an installed kernel.
void set_default_fallback(const std::string& which);

struct FallbackStatistics {
  uint64_t native_calls = 0;
  uint64_t cpu_calls = 0;
  uint64_t cpu_bytes = 0; // copied in both directions
};
FallbackStatistics fallback_statistics(const std::string& op);

struct FallbackReportRow {
  std::string op;
  uint64_t count;
  uint64_t bytes;
};
// Operators served by `host-copy`, most bytes first.
C10_MUSA_API std::vector<FallbackReportRow> fallback_report();

// "allow", "warn" (once per operator, the default) or "error", for the `host-copy` kernel only: `host` copies nothing.
C10_MUSA_API void set_fallback_mode(const std::string& mode);

// Names the op packs that are not installed and may serve an operator, with the fix; "" if there are none. Called for errors
// only, by any thread, without locks held.
using PackAdvice = std::function<std::string(const std::string& op)>;
C10_MUSA_API void set_pack_advice(PackAdvice advice);

// Throws the error of a CPU kernel of torch that lacks the dtype, with the operator, the provider and the missing op packs.
[[noreturn]] C10_MUSA_API void throw_unserved(
    const c10::NotImplementedError& error, const std::string& op, const char* provider);

} // namespace musa_runtime
