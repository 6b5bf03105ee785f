// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <musa_runtime/host/fallback.h>

#include <functional>
#include <string>
#include <vector>

// The boxed kernels that serve a call if no candidate does, and the report of calls that were computed on copies.

namespace musa_runtime {

// Whether the provider `host` exists: a pack provides it, and the host can address the devices' memory.
C10_MUSA_API bool has_host();

// which: "host" or "host-copy".
c10::KernelFunction fallback_kernel(const std::string& which);

// Registers the backend fallback for musa tensors of every layout. Idempotent.
void install_fallbacks();
// Removes what install_fallbacks() registered for single operators, until its next call. A pack that registers a kernel for one
// of these operators with torch would otherwise replace ours, of which torch warns.
void withdraw_fallbacks_of_layouts();
// Selects the backend fallback for operators without an installed kernel.
void set_default_fallback(const std::string& which);

struct FallbackCounts {
  uint64_t host_calls = 0;
  uint64_t copy_calls = 0;
  uint64_t copied_bytes = 0; // in both directions
};
FallbackCounts fallback_counts(const std::string& op);

struct FallbackReportRow {
  std::string op;
  uint64_t count;
  uint64_t bytes; // copied in both directions
};
// Operators served by `host-copy`, most bytes first.
C10_MUSA_API std::vector<FallbackReportRow> fallback_report();

// "allow", "warn" (once per operator, the default) or "error", for the `host-copy` kernel only: `host` copies nothing.
C10_MUSA_API void set_fallback_mode(const std::string& mode);

// Names the op packs that are not installed and may serve an operator, with the fix; "" if there are none. Called for errors
// only, by any thread, without locks held.
using PackAdvice = std::function<std::string(const std::string& op)>;
C10_MUSA_API void set_pack_advice(PackAdvice advice);

} // namespace musa_runtime
