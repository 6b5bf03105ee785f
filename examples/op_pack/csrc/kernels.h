// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <musa_runtime_api.h>

#include <cstdint>

namespace musa_demo {

// out[i] = max(in[i] + bias[i % columns], 0), for `count` elements in rows of `columns`.
void launch_bias_relu(
    const float* in, const float* bias, float* out, int64_t count, int64_t columns, musaStream_t stream);

} // namespace musa_demo
