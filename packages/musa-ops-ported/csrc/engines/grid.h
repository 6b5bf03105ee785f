// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Launch configuration for kernels with a grid-stride loop over elements.
#pragma once

#include <algorithm>
#include <cstdint>

namespace musa_ops_ported {

inline constexpr int kBlock = 256;
// Maximum number of dimensions, after merging, that a kernel accepts: the limit of torch's CUDA kernels.
inline constexpr int kMaxDims = 25;

// Returns the number of blocks of `threads` for `count` elements. Kernels use a grid-stride loop, so the result is
// capped.
inline unsigned grid_for(int64_t count, int threads = kBlock) {
  constexpr int64_t most = int64_t{1} << 20;
  return static_cast<unsigned>(std::clamp<int64_t>((count + threads - 1) / threads, 1, most));
}

} // namespace musa_ops_ported

// Loops over the elements of this thread.
#define MUSA_GRID_LOOP(INDEX, COUNT) \
  for (int64_t INDEX = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; INDEX < (COUNT); \
       INDEX += int64_t(blockDim.x) * gridDim.x)
