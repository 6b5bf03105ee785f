// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Launch configuration and generator state of a random kernel.
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

// Plans a launch for `elements`, of which a thread draws `at_once` per call.
RandomPlan plan_random(int64_t elements, int at_once, const std::optional<at::Generator>& generator);

// Reserves `increment` numbers per thread and returns the generator's state before the reservation.
at::PhiloxMusaState reserve_numbers(uint64_t increment, const std::optional<at::Generator>& generator);

} // namespace musa_ops_ported
