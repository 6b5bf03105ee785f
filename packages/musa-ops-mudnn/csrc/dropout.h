// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/musa/PhiloxMusaState.h>

namespace musa_ops_mudnn {

// Reserves `count` random numbers of the default generator of the tensor's device, and returns the seed and offset.
// While a graph is captured these are device addresses.
at::PhiloxMusaState draw_numbers(const at::Tensor& like, int64_t count);

} // namespace musa_ops_mudnn
