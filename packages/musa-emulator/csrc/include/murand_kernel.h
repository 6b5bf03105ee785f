// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Random numbers in kernels: the counter-based generator Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random
// numbers: as easy as 1, 2, 3; SC 2011). A state is at element `offset` of the sequence of (seed, subsequence).
// Functions with a 4 in the name consume four elements per call, the others as many as they return.
#pragma once

#include <murand_distributions.h>
#include <murand_xorwow.h>
#include <musa_runtime.h>

#include <cstdint>

#ifndef __MUSACC__
#error "murand_kernel.h declares device functions. Fix: compile this file with mcc"
#endif

struct murandStatePhilox4_32_10 {
  uint4 counter; // element number / 4 in the lower half, subsequence in the upper
  uint2 key;
  uint4 output; // for the current counter
  unsigned position; // index of the next element in `output`
  bool has_normal; // the method of Box and Muller computes two at a time
  float normal;
};
typedef murandStatePhilox4_32_10 murandStatePhilox4_32_10_t;
typedef murandStatePhilox4_32_10 murand_state_philox4x32_10;

namespace musa_rand {

__device__ inline uint4 philox(uint4 counter, uint2 key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xD2511F53u} * counter.x;
    const uint64_t second = uint64_t{0xCD9E8D57u} * counter.z;
    counter = make_uint4(
        static_cast<unsigned>(second >> 32) ^ counter.y ^ key.x, static_cast<unsigned>(second),
        static_cast<unsigned>(first >> 32) ^ counter.w ^ key.y, static_cast<unsigned>(first));
    key.x += 0x9E3779B9u;
    key.y += 0xBB67AE85u;
  }
  return counter;
}

// Both halves of the counter are 64-bit numbers; the lower half carries into the upper half.
__device__ inline void advance(uint4& counter, uint64_t by) {
  const uint64_t low = (uint64_t{counter.y} << 32 | counter.x) + by;
  if (low < by) {
    const uint64_t high = (uint64_t{counter.w} << 32 | counter.z) + 1;
    counter.z = static_cast<unsigned>(high);
    counter.w = static_cast<unsigned>(high >> 32);
  }
  counter.x = static_cast<unsigned>(low);
  counter.y = static_cast<unsigned>(low >> 32);
}

} // namespace musa_rand

// Skips elements, or whole subsequences.
__device__ inline void skipahead(unsigned long long elements, murandStatePhilox4_32_10* state) {
  const unsigned long long from_here = elements + state->position;
  musa_rand::advance(state->counter, from_here / 4);
  state->position = static_cast<unsigned>(from_here % 4);
  state->output = musa_rand::philox(state->counter, state->key);
}
__device__ inline void skipahead_sequence(unsigned long long sequences, murandStatePhilox4_32_10* state) {
  const unsigned long long high = (uint64_t{state->counter.w} << 32 | state->counter.z) + sequences;
  state->counter.z = static_cast<unsigned>(high);
  state->counter.w = static_cast<unsigned>(high >> 32);
  state->output = musa_rand::philox(state->counter, state->key);
}

__device__ inline void murand_init(
    unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
    murandStatePhilox4_32_10* state) {
  state->key = make_uint2(static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32));
  state->counter = make_uint4(0, 0, static_cast<unsigned>(subsequence), static_cast<unsigned>(subsequence >> 32));
  state->position = 0;
  state->has_normal = false;
  state->normal = 0;
  skipahead(offset, state);
}

__device__ inline unsigned murand(murandStatePhilox4_32_10* state) {
  const uint4 output = state->output;
  const unsigned result = state->position == 0 ? output.x
      : state->position == 1                   ? output.y
      : state->position == 2                   ? output.z
                                               : output.w;
  if (++state->position == 4) {
    state->position = 0;
    musa_rand::advance(state->counter, 1);
    state->output = musa_rand::philox(state->counter, state->key);
  }
  return result;
}

__device__ inline uint4 murand4(murandStatePhilox4_32_10* state) {
  const uint4 before = state->output;
  musa_rand::advance(state->counter, 1);
  state->output = musa_rand::philox(state->counter, state->key);
  const uint4 after = state->output;
  switch (state->position) {
    case 0: return before;
    case 1: return make_uint4(before.y, before.z, before.w, after.x);
    case 2: return make_uint4(before.z, before.w, after.x, after.y);
    default: return make_uint4(before.w, after.x, after.y, after.z);
  }
}

__device__ inline float murand_uniform(murandStatePhilox4_32_10* state) { return musa_rand::uniform(murand(state)); }
__device__ inline float4 murand_uniform4(murandStatePhilox4_32_10* state) {
  const uint4 bits = murand4(state);
  return make_float4(
      musa_rand::uniform(bits.x), musa_rand::uniform(bits.y), musa_rand::uniform(bits.z), musa_rand::uniform(bits.w));
}
__device__ inline double murand_uniform_double(murandStatePhilox4_32_10* state) {
  const unsigned low = murand(state);
  return musa_rand::uniform53(low, murand(state));
}
__device__ inline double2 murand_uniform2_double(murandStatePhilox4_32_10* state) {
  const uint4 bits = murand4(state);
  return make_double2(musa_rand::uniform53(bits.x, bits.y), musa_rand::uniform53(bits.z, bits.w));
}

__device__ inline float2 murand_normal2(murandStatePhilox4_32_10* state) {
  const unsigned first = murand(state);
  return musa_rand::box_muller(first, murand(state));
}
__device__ inline float murand_normal(murandStatePhilox4_32_10* state) {
  if (state->has_normal) {
    state->has_normal = false;
    return state->normal;
  }
  const float2 both = murand_normal2(state);
  state->has_normal = true;
  state->normal = both.y;
  return both.x;
}
__device__ inline float4 murand_normal4(murandStatePhilox4_32_10* state) {
  const uint4 bits = murand4(state);
  const float2 first = musa_rand::box_muller(bits.x, bits.y);
  const float2 second = musa_rand::box_muller(bits.z, bits.w);
  return make_float4(first.x, first.y, second.x, second.y);
}
__device__ inline double2 murand_normal2_double(murandStatePhilox4_32_10* state) {
  return musa_rand::box_muller53(murand4(state));
}
__device__ inline float murand_log_normal(murandStatePhilox4_32_10* state, float mean, float deviation) {
  return expf(mean + deviation * murand_normal(state));
}
