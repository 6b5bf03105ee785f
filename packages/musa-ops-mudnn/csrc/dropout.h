// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/musa/PhiloxMusaState.h>

namespace musa_ops_mudnn {

// Takes `count` random numbers from the default generator of the tensor's device: where in its sequence they stand.
// While a graph is captured these are addresses on the device.
at::PhiloxMusaState draw_numbers(const at::Tensor& like, int64_t count);

} // namespace musa_ops_mudnn
