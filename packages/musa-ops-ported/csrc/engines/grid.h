// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Launches of one thread per element, or fewer that go on with others.
#pragma once

#include <algorithm>
#include <cstdint>

namespace musa_ops_ported {

inline constexpr int kBlock = 256;
// Dimensions that a kernel receives sizes and strides of, after merging: the limit of torch's CUDA kernels.
inline constexpr int kMaxDims = 25;

// Blocks of `threads` for so many elements. A kernel of these strides on, so the largest grid is enough for all.
inline unsigned grid_for(int64_t count, int threads = kBlock) {
  constexpr int64_t most = int64_t{1} << 20;
  return static_cast<unsigned>(std::clamp<int64_t>((count + threads - 1) / threads, 1, most));
}

} // namespace musa_ops_ported

// The elements of this thread.
#define MUSA_GRID_LOOP(INDEX, COUNT)                                                        \
  for (int64_t INDEX = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; INDEX < (COUNT); \
       INDEX += int64_t(blockDim.x) * gridDim.x)
