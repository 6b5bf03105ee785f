// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The default generator in kernels: XORWOW (Marsaglia: Xorshift RNGs, Journal of Statistical Software 8, 2003). The
// initialization from seed and subsequence is specific to the emulator, so its numbers differ from the vendor's;
// Philox's do not.
#pragma once

#include <murand_distributions.h>

struct murandStateXORWOW {
  unsigned x[5];
  unsigned weyl;
  bool has_normal, has_normal_double; // the method of Box and Muller computes two at a time
  float normal;
  double normal_double;
};
typedef murandStateXORWOW murandState_t;

namespace musa_rand {

// The finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
__device__ inline uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return x ^ x >> 31;
}

} // namespace musa_rand

__device__ inline unsigned murand(murandStateXORWOW* state) {
  unsigned* x = state->x;
  const unsigned t = x[0] ^ x[0] >> 2;
  x[0] = x[1];
  x[1] = x[2];
  x[2] = x[3];
  x[3] = x[4];
  x[4] = x[4] ^ x[4] << 4 ^ t ^ t << 1;
  state->weyl += 362437;
  return x[4] + state->weyl;
}

__device__ inline void skipahead(unsigned long long elements, murandStateXORWOW* state) {
  for (; elements > 0; --elements) {
    murand(state);
  }
}

__device__ inline void murand_init(
    unsigned long long seed, unsigned long long subsequence, unsigned long long offset, murandStateXORWOW* state) {
  uint64_t word = musa_rand::mix(seed) ^ musa_rand::mix(~subsequence);
  for (unsigned& x : state->x) {
    word += 0x9E3779B97F4A7C15ull;
    x = static_cast<unsigned>(musa_rand::mix(word) >> 32) | 1; // an all-zero state would stay zero
  }
  state->weyl = static_cast<unsigned>(musa_rand::mix(word + 1));
  state->has_normal = state->has_normal_double = false;
  skipahead(offset, state);
}

__device__ inline float murand_uniform(murandStateXORWOW* state) { return musa_rand::uniform(murand(state)); }
__device__ inline double murand_uniform_double(murandStateXORWOW* state) {
  const unsigned low = murand(state);
  return musa_rand::uniform53(low, murand(state));
}
__device__ inline float2 murand_normal2(murandStateXORWOW* state) {
  const unsigned first = murand(state);
  return musa_rand::box_muller(first, murand(state));
}
__device__ inline float murand_normal(murandStateXORWOW* state) {
  if (state->has_normal) {
    state->has_normal = false;
    return state->normal;
  }
  const float2 both = murand_normal2(state);
  state->has_normal = true;
  state->normal = both.y;
  return both.x;
}
__device__ inline double murand_normal_double(murandStateXORWOW* state) {
  if (state->has_normal_double) {
    state->has_normal_double = false;
    return state->normal_double;
  }
  uint4 bits;
  bits.x = murand(state);
  bits.y = murand(state);
  bits.z = murand(state);
  bits.w = murand(state);
  const double2 both = musa_rand::box_muller53(bits);
  state->has_normal_double = true;
  state->normal_double = both.y;
  return both.x;
}
__device__ inline float murand_log_normal(murandStateXORWOW* state, float mean, float deviation) {
  return expf(mean + deviation * murand_normal(state));
}
