// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <cstdint>

namespace at {

// The random state that a kernel takes by value. Eager: seed and offset themselves. While a graph is captured: pointers to
// device memory that each replay fills, plus the kernel's own offset within the graph, so that replays draw new numbers.
// Ported kernels read these field names.
struct PhiloxMusaState {
  union Payload {
    uint64_t val;
    int64_t* ptr;
  };

  PhiloxMusaState() = default;
  PhiloxMusaState(uint64_t seed, uint64_t offset) {
    seed_.val = seed;
    offset_.val = offset;
  }
  PhiloxMusaState(int64_t* seed, int64_t* offset_extragraph, uint64_t offset_intragraph)
      : offset_intragraph_(offset_intragraph), captured_(true) {
    seed_.ptr = seed;
    offset_.ptr = offset_extragraph;
  }

  Payload seed_{};
  Payload offset_{};
  uint64_t offset_intragraph_ = 0;
  bool captured_ = false;
};

} // namespace at
