// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Geometry and generator state of a random kernel.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/musa/PhiloxMusaState.h>

#include <cstdint>
#include <optional>

namespace musa_ops_ported {

inline constexpr int kRandomThreads = 256;

struct RandomPlan {
  unsigned blocks;
  at::PhiloxMusaState state;
};

// For `elements`, of which a thread draws `at_once` by one call.
RandomPlan plan_random(int64_t elements, int at_once, const std::optional<at::Generator>& generator);

// Reserves `increment` numbers per thread.
at::PhiloxMusaState reserve_numbers(uint64_t increment, const std::optional<at::Generator>& generator);

} // namespace musa_ops_ported
