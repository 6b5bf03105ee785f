// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// What musa_fp16.h and musa_bf16.h have in common. Not to be included by itself.
#ifndef MUSA_SIMT_FLOAT16_H
#define MUSA_SIMT_FLOAT16_H
#ifdef __cplusplus

#include <cmath>
#include <cstring>
#include <type_traits>

namespace musa_simt_float16 {

inline unsigned bits_of(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float float_of(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Kernels read such numbers in place of other types of their size: torch's Half reads its bits as __half.
template <class Format>
struct __attribute__((__may_alias__, __aligned__(2))) Number {
  unsigned short __x;

  Number() = default;
  Number(float value) : __x(Format::from_float(value)) {}
  template <class T, std::enable_if_t<std::is_arithmetic_v<T> && !std::is_same_v<T, float>, int> = 0>
  Number(T value) : Number(static_cast<float>(value)) {}
  static Number from_bits(unsigned short bits) {
    Number number;
    number.__x = bits;
    return number;
  }
  operator float() const { return Format::to_float(__x); }

  Number& operator+=(Number other) { return *this = Number(float(*this) + float(other)); }
  Number& operator-=(Number other) { return *this = Number(float(*this) - float(other)); }
  Number& operator*=(Number other) { return *this = Number(float(*this) * float(other)); }
  Number& operator/=(Number other) { return *this = Number(float(*this) / float(other)); }
  Number operator-() const { return from_bits(static_cast<unsigned short>(__x ^ 0x8000u)); }
  Number operator+() const { return *this; }
  friend Number __ldg(const Number* place) { return *place; }
  friend Number operator+(Number a, Number b) { return Number(float(a) + float(b)); }
  friend Number operator-(Number a, Number b) { return Number(float(a) - float(b)); }
  friend Number operator*(Number a, Number b) { return Number(float(a) * float(b)); }
  friend Number operator/(Number a, Number b) { return Number(float(a) / float(b)); }
  friend bool operator==(Number a, Number b) { return float(a) == float(b); }
  friend bool operator!=(Number a, Number b) { return float(a) != float(b); }
  friend bool operator<(Number a, Number b) { return float(a) < float(b); }
  friend bool operator>(Number a, Number b) { return float(a) > float(b); }
  friend bool operator<=(Number a, Number b) { return float(a) <= float(b); }
  friend bool operator>=(Number a, Number b) { return float(a) >= float(b); }
};

template <class N>
struct __attribute__((__may_alias__, __aligned__(4))) Pair {
  N x, y;

  friend Pair operator+(Pair a, Pair b) { return {a.x + b.x, a.y + b.y}; }
  friend Pair operator-(Pair a, Pair b) { return {a.x - b.x, a.y - b.y}; }
  friend Pair operator*(Pair a, Pair b) { return {a.x * b.x, a.y * b.y}; }
  friend Pair operator/(Pair a, Pair b) { return {a.x / b.x, a.y / b.y}; }
};

} // namespace musa_simt_float16

// The functions that take such numbers; `name` is how conversions call them.
#define MUSA_SIMT_FLOAT16_FUNCTIONS(N, N2, name)                                                  \
  inline N __float2##name(float x) { return N(x); }                                               \
  inline N __float2##name##_rn(float x) { return N(x); }                                          \
  inline N __double2##name(double x) { return N(static_cast<float>(x)); }                         \
  inline N __int2##name##_rn(int x) { return N(static_cast<float>(x)); }                          \
  inline N __int2##name##_rz(int x) { return N(static_cast<float>(x)); }                          \
  inline float __##name##2float(N x) { return x; }                                                \
  inline int __##name##2int_rn(N x) { return static_cast<int>(std::nearbyint(float(x))); }        \
  inline int __##name##2int_rz(N x) { return static_cast<int>(float(x)); }                        \
  inline N __ushort_as_##name(unsigned short x) { return N::from_bits(x); }                       \
  inline N __short_as_##name(short x) { return N::from_bits(static_cast<unsigned short>(x)); }    \
  inline unsigned short __##name##_as_ushort(N x) { return x.__x; }                               \
  inline short __##name##_as_short(N x) { return static_cast<short>(x.__x); }                     \
  inline N __hadd(N a, N b) { return a + b; }                                                     \
  inline N __hsub(N a, N b) { return a - b; }                                                     \
  inline N __hmul(N a, N b) { return a * b; }                                                     \
  inline N __hdiv(N a, N b) { return a / b; }                                                     \
  inline N __hneg(N a) { return -a; }                                                             \
  inline N __habs(N a) { return N::from_bits(static_cast<unsigned short>(a.__x & 0x7fffu)); }     \
  inline N __hfma(N a, N b, N c) { return N(std::fma(float(a), float(b), float(c))); }            \
  inline bool __heq(N a, N b) { return a == b; }                                                  \
  inline bool __hne(N a, N b) { return a != b; }                                                  \
  inline bool __hlt(N a, N b) { return a < b; }                                                   \
  inline bool __hle(N a, N b) { return a <= b; }                                                  \
  inline bool __hgt(N a, N b) { return a > b; }                                                   \
  inline bool __hge(N a, N b) { return a >= b; }                                                  \
  inline bool __hisnan(N a) { return std::isnan(float(a)); }                                      \
  inline int __hisinf(N a) { return std::isinf(float(a)) ? (float(a) > 0 ? 1 : -1) : 0; }         \
  inline N __hmax(N a, N b) { return N(std::fmax(float(a), float(b))); }                          \
  inline N __hmin(N a, N b) { return N(std::fmin(float(a), float(b))); }                          \
  inline N hexp(N a) { return N(std::exp(float(a))); }                                            \
  inline N hlog(N a) { return N(std::log(float(a))); }                                            \
  inline N hsqrt(N a) { return N(std::sqrt(float(a))); }                                          \
  inline N hrsqrt(N a) { return N(1.0f / std::sqrt(float(a))); }                                  \
  inline N hsin(N a) { return N(std::sin(float(a))); }                                            \
  inline N hcos(N a) { return N(std::cos(float(a))); }                                            \
  inline N hfloor(N a) { return N(std::floor(float(a))); }                                        \
  inline N hceil(N a) { return N(std::ceil(float(a))); }                                          \
  inline N2 __##name##s2##name##2(N a, N b) { return {a, b}; }                                    \
  inline N __low2##name(N2 a) { return a.x; }                                                     \
  inline N __high2##name(N2 a) { return a.y; }                                                    \
  inline float __low2float(N2 a) { return a.x; }                                                  \
  inline float __high2float(N2 a) { return a.y; }                                                 \
  inline N2 __##name##2##name##2(N a) { return {a, a}; }                                          \
  inline N2 __float2##name##2_rn(float a) { return {N(a), N(a)}; }                                \
  inline N2 __floats2##name##2_rn(float a, float b) { return {N(a), N(b)}; }                      \
  inline N2 __hadd2(N2 a, N2 b) { return a + b; }                                                 \
  inline N2 __hsub2(N2 a, N2 b) { return a - b; }                                                 \
  inline N2 __hmul2(N2 a, N2 b) { return a * b; }                                                 \
  inline N2 __hfma2(N2 a, N2 b, N2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }

#endif
#endif
