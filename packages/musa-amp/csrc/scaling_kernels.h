// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The arguments of the kernels. Included by host and device code, so it includes no header of torch.
#pragma once

#include <musa_runtime.h>

#include <cstdint>

namespace musa_amp {

enum class Dtype { kFloat16, kBFloat16, kFloat32, kFloat64 };

// Contiguous elements of one tensor.
struct Chunk {
  void* data;
  int64_t count;
};

// The chunks of one launch, one block each. 240 chunks fit into the 4 KiB limit of kernel arguments.
struct Chunks {
  static constexpr int kMost = 240;
  int count = 0;
  Chunk at[kMost];
};

inline constexpr int64_t kChunkElements = 65536;

// Multiplies the elements by *factor, in float32 for 16-bit types, and sets *found_inf to 1 if an element was infinite
// or NaN before.
void launch_unscale(const Chunks& chunks, Dtype dtype, float* found_inf, const float* factor, musaStream_t stream);

// Updates the scale: multiplies it by `backoff` if *found_inf is set, and by `growth` after `interval` steps without an
// infinite gradient, unless the result overflows.
void launch_update_scale(
    float* scale, int* growth_tracker, const float* found_inf, double growth, double backoff, int64_t interval,
    musaStream_t stream);

} // namespace musa_amp
