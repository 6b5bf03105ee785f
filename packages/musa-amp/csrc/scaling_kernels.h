// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// What the kernels take. Both sides include it; it names nothing of torch.
#pragma once

#include <musa_runtime.h>

#include <cstdint>

namespace musa_amp {

enum class Dtype { kFloat16, kBFloat16, kFloat32, kFloat64 };

// Elements that lie beside each other in one tensor.
struct Chunk {
  void* data;
  int64_t count;
};

// The chunks of one launch, a block each; kernels take 4 KiB of arguments.
struct Chunks {
  static constexpr int kMost = 240;
  int count = 0;
  Chunk at[kMost];
};

inline constexpr int64_t kChunkElements = 65536;

// Multiplies the elements by *factor, in float for the 16-bit types, and sets *found_inf to 1 if one of them was infinite or
// not a number before.
void launch_unscale(const Chunks& chunks, Dtype dtype, float* found_inf, const float* factor, musaStream_t stream);

// The next scale: times `backoff` after an infinite gradient; times `growth` after `interval` steps without one, where that
// stays finite.
void launch_update_scale(
    float* scale, int* growth_tracker, const float* found_inf, double growth, double backoff, int64_t interval,
    musaStream_t stream);

} // namespace musa_amp
