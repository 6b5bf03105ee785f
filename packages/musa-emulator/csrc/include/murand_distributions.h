// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Uniform and normal numbers from random bits, for all generators of murand_kernel.h.
#pragma once

#include <musa_runtime.h>

#include <cmath>
#include <cstdint>

#ifndef __MUSACC__
#error "murand_distributions.h declares device functions. Fix: compile this file with mcc"
#endif

namespace musa_rand {

constexpr float kUnit = 2.3283064365386963e-10f; // 2^-32
constexpr double kUnit53 = 1.1102230246251565e-16; // 2^-53

// In (0, 1].
__device__ inline float uniform(unsigned bits) { return bits * kUnit + kUnit / 2; }
__device__ inline double uniform53(unsigned low, unsigned high) {
  const uint64_t bits = uint64_t{low} ^ uint64_t { high } << (53 - 32);
  return bits * kUnit53 + kUnit53 / 2;
}

// Converts two uniform numbers to two normal numbers.
__device__ inline float2 box_muller(unsigned first, unsigned second) {
  const float u = uniform(first);
  const float v = second * (kUnit * 6.2831855f) + kUnit * 6.2831855f / 2;
  const float length = sqrtf(-2.0f * logf(u));
  return make_float2(length * sinf(v), length * cosf(v));
}
__device__ inline double2 box_muller53(uint4 bits) {
  const double u = uniform53(bits.x, bits.y);
  const double v = uniform53(bits.z, bits.w) * 2;
  const double length = sqrt(-2.0 * log(u));
  return make_double2(length * sinpi(v), length * cospi(v));
}

} // namespace musa_rand
