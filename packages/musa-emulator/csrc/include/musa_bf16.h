// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// 16-bit numbers with the upper half of a float's bits. Each operation is computed in float and rounded once.
#ifndef MUSA_BF16_H
#define MUSA_BF16_H
#ifdef __cplusplus

#include "musa_simt_float16_functions.h"

namespace musa_simt_float16 {

struct BFloat16Format {
  static unsigned short from_float(float value) {
    const unsigned bits = bits_of(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
      return static_cast<unsigned short>(0x7fffu); // NaN
    }
    return static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
  }
  static float to_float(unsigned short number) { return float_of(static_cast<unsigned>(number) << 16); }
};

} // namespace musa_simt_float16

struct __mt_bfloat16_raw {
  unsigned short x;
};
struct __mt_bfloat162_raw {
  unsigned short x, y;
};

struct __attribute__((__may_alias__)) __mt_bfloat16
    : musa_simt_float16::Number<__mt_bfloat16, musa_simt_float16::BFloat16Format> {
  using Number::Number;
  __mt_bfloat16() = default;
  __host__ __device__ __mt_bfloat16(const __mt_bfloat16_raw& raw) { __x = raw.x; }
  __host__ __device__ operator __mt_bfloat16_raw() const { return {__x}; }
};

struct __attribute__((__may_alias__)) __mt_bfloat162 : musa_simt_float16::Pair<__mt_bfloat162, __mt_bfloat16> {
  using Pair::Pair;
  __mt_bfloat162() = default;
  __host__ __device__ __mt_bfloat162(const __mt_bfloat162_raw& raw)
      : Pair(__mt_bfloat16::from_bits(raw.x), __mt_bfloat16::from_bits(raw.y)) {}
  __host__ __device__ operator __mt_bfloat162_raw() const { return {x.__x, y.__x}; }
};

typedef __mt_bfloat16 mt_bfloat16;
typedef __mt_bfloat162 mt_bfloat162;

MUSA_SIMT_FLOAT16_FUNCTIONS(__mt_bfloat16, __mt_bfloat162, bfloat16)

#endif
#endif
