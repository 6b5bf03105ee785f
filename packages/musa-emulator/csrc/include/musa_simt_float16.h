// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Common parts of the types in musa_fp16.h and musa_bf16.h. Do not include this header directly.
#ifndef MUSA_SIMT_FLOAT16_H
#define MUSA_SIMT_FLOAT16_H
#ifdef __cplusplus

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "host_defines.h"
#include "vector_functions.h"

namespace musa_simt_float16 {

inline __host__ __device__ unsigned bits_of(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline __host__ __device__ float float_of(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Base class of a 16-bit number N. N is a separate struct so that programs can forward-declare it (struct __half;).
// Kernels access other 16-bit types through N: torch's Half reads its bits as __half.
template <class N, class Format>
struct __attribute__((__may_alias__, __aligned__(2))) Number {
  unsigned short __x;

  Number() = default;
  __host__ __device__ Number(float value) : __x(Format::from_float(value)) {}
  template <class T, std::enable_if_t<std::is_arithmetic<T>::value && !std::is_same<T, float>::value, int> = 0>
  __host__ __device__ Number(T value) : Number(static_cast<float>(value)) {}
  static __host__ __device__ N from_bits(unsigned short bits) {
    N number;
    number.__x = bits;
    return number;
  }
  __host__ __device__ operator float() const { return Format::to_float(__x); }

  __host__ __device__ N& operator+=(N other) { return self() = N(float(*this) + float(other)); }
  __host__ __device__ N& operator-=(N other) { return self() = N(float(*this) - float(other)); }
  __host__ __device__ N& operator*=(N other) { return self() = N(float(*this) * float(other)); }
  __host__ __device__ N& operator/=(N other) { return self() = N(float(*this) / float(other)); }
  __host__ __device__ N& operator++() { return *this += N(1.0f); }
  __host__ __device__ N& operator--() { return *this -= N(1.0f); }
  __host__ __device__ N operator++(int) {
    const N before = self();
    ++*this;
    return before;
  }
  __host__ __device__ N operator--(int) {
    const N before = self();
    --*this;
    return before;
  }
  __host__ __device__ N operator-() const { return from_bits(static_cast<unsigned short>(__x ^ 0x8000u)); }
  __host__ __device__ N operator+() const { return from_bits(__x); }
  friend __host__ __device__ N __ldg(const N* place) { return *place; }
  friend __host__ __device__ N operator+(N a, N b) { return N(float(a) + float(b)); }
  friend __host__ __device__ N operator-(N a, N b) { return N(float(a) - float(b)); }
  friend __host__ __device__ N operator*(N a, N b) { return N(float(a) * float(b)); }
  friend __host__ __device__ N operator/(N a, N b) { return N(float(a) / float(b)); }
  friend __host__ __device__ bool operator==(N a, N b) { return float(a) == float(b); }
  friend __host__ __device__ bool operator!=(N a, N b) { return float(a) != float(b); }
  friend __host__ __device__ bool operator<(N a, N b) { return float(a) < float(b); }
  friend __host__ __device__ bool operator>(N a, N b) { return float(a) > float(b); }
  friend __host__ __device__ bool operator<=(N a, N b) { return float(a) <= float(b); }
  friend __host__ __device__ bool operator>=(N a, N b) { return float(a) >= float(b); }

 private:
  __host__ __device__ N& self() { return static_cast<N&>(*this); }
};

// Two numbers in a word. A comparison is true if it is true for both.
template <class N2, class N>
struct __attribute__((__may_alias__, __aligned__(4))) Pair {
  N x, y;

  Pair() = default;
  __host__ __device__ Pair(N first, N second) : x(first), y(second) {}

  __host__ __device__ N2& operator+=(N2 other) { return self() = self() + other; }
  __host__ __device__ N2& operator-=(N2 other) { return self() = self() - other; }
  __host__ __device__ N2& operator*=(N2 other) { return self() = self() * other; }
  __host__ __device__ N2& operator/=(N2 other) { return self() = self() / other; }
  __host__ __device__ N2& operator++() { return *this += N2(N(1.0f), N(1.0f)); }
  __host__ __device__ N2& operator--() { return *this -= N2(N(1.0f), N(1.0f)); }
  __host__ __device__ N2 operator-() const { return {-x, -y}; }
  __host__ __device__ N2 operator+() const { return {x, y}; }
  friend __host__ __device__ N2 operator+(N2 a, N2 b) { return {a.x + b.x, a.y + b.y}; }
  friend __host__ __device__ N2 operator-(N2 a, N2 b) { return {a.x - b.x, a.y - b.y}; }
  friend __host__ __device__ N2 operator*(N2 a, N2 b) { return {a.x * b.x, a.y * b.y}; }
  friend __host__ __device__ N2 operator/(N2 a, N2 b) { return {a.x / b.x, a.y / b.y}; }
  friend __host__ __device__ bool operator==(N2 a, N2 b) { return a.x == b.x && a.y == b.y; }
  friend __host__ __device__ bool operator!=(N2 a, N2 b) { return a.x != b.x && a.y != b.y; }
  friend __host__ __device__ bool operator<(N2 a, N2 b) { return a.x < b.x && a.y < b.y; }
  friend __host__ __device__ bool operator>(N2 a, N2 b) { return a.x > b.x && a.y > b.y; }
  friend __host__ __device__ bool operator<=(N2 a, N2 b) { return a.x <= b.x && a.y <= b.y; }
  friend __host__ __device__ bool operator>=(N2 a, N2 b) { return a.x >= b.x && a.y >= b.y; }

 private:
  __host__ __device__ N2& self() { return static_cast<N2&>(*this); }
};

// The rounding direction. If the nearest number is on the wrong side of `value`, its neighbor is taken.
enum class Toward { Zero, Up, Down };
template <class N>
inline __host__ __device__ N rounded(double value, Toward direction) {
  N nearest(static_cast<float>(value));
  const double got = float(nearest);
  if (std::isnan(value) || got == value) {
    return nearest;
  }
  const bool down = direction == Toward::Down || (direction == Toward::Zero && value > 0);
  if (down ? got < value : got > value) {
    return nearest;
  }
  // Adjacent numbers have adjacent bits, except at 0, where the sign changes.
  const unsigned short bits = nearest.__x;
  if ((bits & 0x7fffu) == 0) {
    return N::from_bits(down ? 0x8001u : 0x0001u);
  }
  const bool grows = down == ((bits & 0x8000u) != 0);
  return N::from_bits(static_cast<unsigned short>(bits + (grows ? 1 : -1)));
}

// Converts a whole number to `To`, clamped to its range; NaN becomes 0.
template <class To>
inline __host__ __device__ To integer_of(float whole) {
  if (std::isnan(whole)) {
    return 0;
  }
  if (whole <= static_cast<float>(std::numeric_limits<To>::min())) {
    return std::numeric_limits<To>::min();
  }
  return whole >= static_cast<float>(std::numeric_limits<To>::max()) ? std::numeric_limits<To>::max()
                                                                     : static_cast<To>(whole);
}

inline __host__ __device__ float clamped(float value) {
  return value > 0.0f ? (value < 1.0f ? value : 1.0f) : 0.0f; // NaN becomes 0
}

} // namespace musa_simt_float16

#endif
#endif
