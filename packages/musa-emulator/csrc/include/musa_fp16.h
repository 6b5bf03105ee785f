// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// IEEE 754 16-bit floating-point numbers: 5 exponent bits, 10 fraction bits. Each operation is computed in float and
// rounded once.
#ifndef MUSA_FP16_H
#define MUSA_FP16_H
#ifdef __cplusplus

#include "musa_simt_float16_functions.h"

namespace musa_simt_float16 {

struct HalfFormat {
  static unsigned short from_float(float value) {
    const unsigned bits = bits_of(value);
    const unsigned sign = bits >> 16 & 0x8000u;
    const unsigned magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
      return static_cast<unsigned short>(0x7fffu); // NaN
    }
    if (magnitude >= 0x477ff000u) { // values that round to 65520 or more
      return static_cast<unsigned short>(sign | 0x7c00u);
    }
    if (magnitude < 0x38800000u) { // subnormal: in steps of 2^-24
      const float steps = float_of(magnitude) * 16777216.0f;
      const unsigned whole = static_cast<unsigned>(steps);
      const float rest = steps - static_cast<float>(whole);
      return static_cast<unsigned short>(sign | (whole + (rest > 0.5f || (rest == 0.5f && (whole & 1u)))));
    }
    const unsigned rebased = magnitude - 0x38000000u;
    return static_cast<unsigned short>(sign | (rebased + 0xfffu + (rebased >> 13 & 1u)) >> 13);
  }
  static float to_float(unsigned short half) {
    const unsigned sign = (half & 0x8000u) << 16;
    const unsigned magnitude = half & 0x7fffu;
    if (magnitude >= 0x7c00u) {
      return float_of(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    }
    if (magnitude < 0x400u) {
      const float value = static_cast<float>(magnitude) / 16777216.0f;
      return sign != 0 ? -value : value;
    }
    return float_of(sign | ((magnitude << 13) + 0x38000000u));
  }
};

} // namespace musa_simt_float16

struct __half_raw {
  unsigned short x;
};
struct __half2_raw {
  unsigned short x, y;
};

struct __attribute__((__may_alias__)) __half : musa_simt_float16::Number<__half, musa_simt_float16::HalfFormat> {
  using Number::Number;
  __half() = default;
  __host__ __device__ __half(const __half_raw& raw) { __x = raw.x; }
  __host__ __device__ operator __half_raw() const { return {__x}; }
};

struct __attribute__((__may_alias__)) __half2 : musa_simt_float16::Pair<__half2, __half> {
  using Pair::Pair;
  __half2() = default;
  __host__ __device__ __half2(const __half2_raw& raw) : Pair(__half::from_bits(raw.x), __half::from_bits(raw.y)) {}
  __host__ __device__ operator __half2_raw() const { return {x.__x, y.__x}; }
};

typedef __half half;
typedef __half2 half2;

MUSA_SIMT_FLOAT16_FUNCTIONS(__half, __half2, half)

#endif
#endif
