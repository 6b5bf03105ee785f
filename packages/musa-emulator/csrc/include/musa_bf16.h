// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Numbers of 16 bits that are the upper half of a float. Each operation is one of float, rounded once.
#ifndef MUSA_BF16_H
#define MUSA_BF16_H
#ifdef __cplusplus

#include "musa_simt_float16.h"

namespace musa_simt_float16 {

struct BFloat16Format {
  static unsigned short from_float(float value) {
    const unsigned bits = bits_of(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
      return static_cast<unsigned short>(0x7fffu); // not a number
    }
    return static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
  }
  static float to_float(unsigned short number) {
    return float_of(static_cast<unsigned>(number) << 16);
  }
};

} // namespace musa_simt_float16

using __mt_bfloat16 = musa_simt_float16::Number<musa_simt_float16::BFloat16Format>;
using __mt_bfloat162 = musa_simt_float16::Pair<__mt_bfloat16>;
using mt_bfloat16 = __mt_bfloat16;
using mt_bfloat162 = __mt_bfloat162;
struct __mt_bfloat16_raw {
  unsigned short x;
};

MUSA_SIMT_FLOAT16_FUNCTIONS(__mt_bfloat16, __mt_bfloat162, bfloat16)

#endif
#endif
