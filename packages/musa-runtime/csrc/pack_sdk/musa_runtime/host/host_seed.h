// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <cstdint>

// Seeds of native random operators: each call has a CPU generator seeded from the musa generator's seed and offset.

namespace musa_runtime {

// The amount by which a native random operator advances the offset. One counter block per call separates calls; within a
// call the CPU engine generates its own long sequence.
constexpr uint64_t kDrawnPerCall = 4;

// Returns the seed of the CPU generator for a musa generator's seed and offset.
inline uint64_t host_seed(uint64_t seed, uint64_t offset) {
  // splitmix64 finaliser (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014): neighbouring
  // offsets must not give correlated mt19937 states.
  uint64_t mixed = seed + 0x9E3779B97F4A7C15ull * (offset + 1);
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ull;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBull;
  mixed ^= mixed >> 31;
  return mixed;
}

} // namespace musa_runtime
