// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// 8-bit floating-point storage types: e4m3 (4 exponent bits, 3 fraction bits, no infinity, up to 448) and e5m2 (as
// IEEE 754, up to 57344), from "FP8 formats for deep learning" (Micikevicius et al., 2022). Arithmetic is done in
// float.
#ifndef MUSA_FP8_H
#define MUSA_FP8_H
#ifdef __cplusplus

#include "musa_bf16.h"
#include "musa_fp16.h"

typedef unsigned char __mt_fp8_storage_t;
typedef unsigned short __mt_fp8x2_storage_t;
typedef unsigned int __mt_fp8x4_storage_t;
enum __mt_fp8_interpretation_t { __MT_E4M3, __MT_E5M2 };
// Conversion of values that are too large: to infinity (e4m3: NaN), or to the largest number.
enum __mt_saturation_t { __MT_NOSAT, __MT_SATFINITE };

namespace musa_simt_float8 {

struct E4M3 {
  static constexpr int kFraction = 3, kBias = 7;
  static constexpr unsigned kLargest = 0x7e, kTooLarge = 0x7f, kNotANumber = 0x7f;
  static constexpr __mt_fp8_interpretation_t kKind = __MT_E4M3;
};
struct E5M2 {
  static constexpr int kFraction = 2, kBias = 15;
  static constexpr unsigned kLargest = 0x7b, kTooLarge = 0x7c, kNotANumber = 0x7f;
  static constexpr __mt_fp8_interpretation_t kKind = __MT_E5M2;
};

template <class Format>
inline __host__ __device__ float to_float(unsigned bits) {
  const unsigned magnitude = bits & 0x7fu;
  float value;
  if (magnitude > Format::kLargest) {
    value = magnitude == Format::kTooLarge && Format::kTooLarge != Format::kNotANumber
        ? std::numeric_limits<float>::infinity()
        : std::numeric_limits<float>::quiet_NaN();
  } else {
    const unsigned exponent = magnitude >> Format::kFraction;
    const unsigned fraction = magnitude & ((1u << Format::kFraction) - 1);
    const unsigned significand = exponent == 0 ? fraction : fraction | 1u << Format::kFraction;
    value = std::ldexp(
        static_cast<float>(significand),
        static_cast<int>(exponent == 0 ? 1 : exponent) - Format::kBias - Format::kFraction);
  }
  return (bits & 0x80u) != 0 ? -value : value;
}

template <class Format>
inline __host__ __device__ unsigned char from_float(float value, __mt_saturation_t saturation) {
  const unsigned sign = std::signbit(value) ? 0x80u : 0u;
  if (std::isnan(value)) {
    return static_cast<unsigned char>(sign | Format::kNotANumber);
  }
  const float magnitude = std::fabs(value);
  int exponent = 0;
  std::frexp(magnitude, &exponent); // in [0.5, 1), times 2^exponent
  const int least = 1 - Format::kBias;
  exponent = exponent - 1 < least || magnitude == 0.0f ? least : exponent - 1;
  // In units of the last place, ties to even. A carry into the exponent gives the next representable number.
  const float steps = std::isinf(value) ? 0.0f : std::nearbyint(std::ldexp(magnitude, Format::kFraction - exponent));
  const unsigned bits = (static_cast<unsigned>(exponent - least) << Format::kFraction) + static_cast<unsigned>(steps);
  if (std::isinf(value) || bits > Format::kLargest) {
    return static_cast<unsigned char>(sign | (saturation == __MT_SATFINITE ? Format::kLargest : Format::kTooLarge));
  }
  return static_cast<unsigned char>(sign | bits);
}

template <class Format>
struct Number {
  __mt_fp8_storage_t __x;

  Number() = default;
  template <class T, std::enable_if_t<std::is_arithmetic<T>::value, int> = 0>
  explicit __host__ __device__ Number(T value) : __x(from_float<Format>(static_cast<float>(value), __MT_SATFINITE)) {}
  explicit __host__ __device__ Number(__half value) : Number(float(value)) {}
  explicit __host__ __device__ Number(__mt_bfloat16 value) : Number(float(value)) {}
  explicit __host__ __device__ operator float() const { return to_float<Format>(__x); }
  explicit __host__ __device__ operator double() const { return to_float<Format>(__x); }
  explicit __host__ __device__ operator __half() const { return __half(to_float<Format>(__x)); }
  explicit __host__ __device__ operator __mt_bfloat16() const { return __mt_bfloat16(to_float<Format>(__x)); }
  explicit __host__ __device__ operator bool() const { return (__x & 0x7fu) != 0; }
};

// Two or four numbers packed into a word, the first in the lowest byte.
template <class Format, class Word>
struct Vector {
  Word __x;

  Vector() = default;
  explicit __host__ __device__ Vector(float2 v) : __x(static_cast<Word>(byte(v.x) | byte(v.y) << 8)) {}
  explicit __host__ __device__ Vector(float4 v)
      : __x(static_cast<Word>(byte(v.x) | byte(v.y) << 8 | byte(v.z) << 16 | byte(v.w) << 24)) {
    static_assert(sizeof(Word) == 4, "the word is too large for two numbers");
  }
  explicit __host__ __device__ Vector(__half2 v) : Vector(make_float2(float(v.x), float(v.y))) {}
  explicit __host__ __device__ Vector(__mt_bfloat162 v) : Vector(make_float2(float(v.x), float(v.y))) {}
  explicit __host__ __device__ operator float2() const { return make_float2(at(0), at(1)); }
  explicit __host__ __device__ operator float4() const {
    static_assert(sizeof(Word) == 4, "the word is too small for four numbers");
    return make_float4(at(0), at(1), at(2), at(3));
  }
  explicit __host__ __device__ operator __half2() const { return {__half(at(0)), __half(at(1))}; }

 private:
  static __host__ __device__ unsigned byte(float value) { return from_float<Format>(value, __MT_SATFINITE); }
  __host__ __device__ float at(int i) const { return to_float<Format>(static_cast<unsigned>(__x) >> (8 * i) & 0xffu); }
};

} // namespace musa_simt_float8

struct __mt_fp8_e4m3 : musa_simt_float8::Number<musa_simt_float8::E4M3> {
  using Number::Number;
  __mt_fp8_e4m3() = default;
};
struct __mt_fp8_e5m2 : musa_simt_float8::Number<musa_simt_float8::E5M2> {
  using Number::Number;
  __mt_fp8_e5m2() = default;
};
struct __mt_fp8x2_e4m3 : musa_simt_float8::Vector<musa_simt_float8::E4M3, __mt_fp8x2_storage_t> {
  using Vector::Vector;
  __mt_fp8x2_e4m3() = default;
};
struct __mt_fp8x2_e5m2 : musa_simt_float8::Vector<musa_simt_float8::E5M2, __mt_fp8x2_storage_t> {
  using Vector::Vector;
  __mt_fp8x2_e5m2() = default;
};
struct __mt_fp8x4_e4m3 : musa_simt_float8::Vector<musa_simt_float8::E4M3, __mt_fp8x4_storage_t> {
  using Vector::Vector;
  __mt_fp8x4_e4m3() = default;
};
struct __mt_fp8x4_e5m2 : musa_simt_float8::Vector<musa_simt_float8::E5M2, __mt_fp8x4_storage_t> {
  using Vector::Vector;
  __mt_fp8x4_e5m2() = default;
};

static inline __host__ __device__ __mt_fp8x2_storage_t
__musa_cvt_float2_to_fp8x2(float2 v, __mt_saturation_t saturation, __mt_fp8_interpretation_t kind) {
  const auto byte = [=](float value) -> unsigned {
    return kind == __MT_E4M3 ? musa_simt_float8::from_float<musa_simt_float8::E4M3>(value, saturation)
                             : musa_simt_float8::from_float<musa_simt_float8::E5M2>(value, saturation);
  };
  return static_cast<__mt_fp8x2_storage_t>(byte(v.x) | byte(v.y) << 8);
}
static inline __host__ __device__ __mt_fp8x4_storage_t
__musa_cvt_float4_to_fp8x4(float4 v, __mt_saturation_t saturation, __mt_fp8_interpretation_t kind) {
  const __mt_fp8x4_storage_t low = __musa_cvt_float2_to_fp8x2(make_float2(v.x, v.y), saturation, kind);
  return low |
      static_cast<__mt_fp8x4_storage_t>(__musa_cvt_float2_to_fp8x2(make_float2(v.z, v.w), saturation, kind)) << 16;
}

#endif
#endif
