// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <musa_runtime_api.h>

#include <cstdint>

namespace musa_stable_demo {

// out[i] = max(in[i], 0), for `count` elements.
void launch_relu(const float* in, float* out, int64_t count, musaStream_t stream);

// out[i] = in[i] * scale + shift, for `count` elements.
void launch_scale_shift(const float* in, float scale, float shift, float* out, int64_t count, musaStream_t stream);

} // namespace musa_stable_demo
