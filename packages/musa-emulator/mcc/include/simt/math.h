// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Numeric functions of kernels that the C library lacks. C's functions are available already, also under their float
// names.
#pragma once

#include <algorithm>
#include <math.h> // of C++: with the overloads of abs and all others outside of std too
#include <stdlib.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <limits>
#include <type_traits>

// ---- vectorized functions: glibc has vector versions of these, which a loop of one thread over its elements may
// use. Other C libraries and sanitizers use the scalar versions; so does double, whose vector versions lose the last
// digits.

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)
#define MUSA_SIMT_VECTORS(...) __attribute__((simd("notinbranch"))) float __VA_ARGS__ noexcept;
extern "C" {
// libmusart contains its own version: csrc/musart/simt/vector_math.cpp.
__attribute__((simd("notinbranch"))) float expf(float) noexcept __asm__("musa_simt_expf");
MUSA_SIMT_VECTORS(logf(float))
MUSA_SIMT_VECTORS(sinf(float))
MUSA_SIMT_VECTORS(cosf(float))
#if __GLIBC_PREREQ(2, 35)
MUSA_SIMT_VECTORS(acosf(float))
MUSA_SIMT_VECTORS(acoshf(float))
MUSA_SIMT_VECTORS(asinf(float))
MUSA_SIMT_VECTORS(asinhf(float))
MUSA_SIMT_VECTORS(atanf(float))
MUSA_SIMT_VECTORS(atanhf(float))
MUSA_SIMT_VECTORS(cbrtf(float))
MUSA_SIMT_VECTORS(coshf(float))
MUSA_SIMT_VECTORS(erff(float))
MUSA_SIMT_VECTORS(erfcf(float))
MUSA_SIMT_VECTORS(exp2f(float))
MUSA_SIMT_VECTORS(expm1f(float))
MUSA_SIMT_VECTORS(log10f(float))
MUSA_SIMT_VECTORS(log1pf(float))
MUSA_SIMT_VECTORS(log2f(float))
MUSA_SIMT_VECTORS(sinhf(float))
MUSA_SIMT_VECTORS(tanf(float))
MUSA_SIMT_VECTORS(tanhf(float))
MUSA_SIMT_VECTORS(atan2f(float, float))
MUSA_SIMT_VECTORS(hypotf(float, float))
#endif
}
#undef MUSA_SIMT_VECTORS
#endif

// ---- integers and bits

namespace musa_simt {

template <class To, class From>
inline To bits_as(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}

} // namespace musa_simt

inline int __float_as_int(float x) { return musa_simt::bits_as<int>(x); }
inline unsigned __float_as_uint(float x) { return musa_simt::bits_as<unsigned>(x); }
inline float __int_as_float(int x) { return musa_simt::bits_as<float>(x); }
inline float __uint_as_float(unsigned x) { return musa_simt::bits_as<float>(x); }
inline long long __double_as_longlong(double x) { return musa_simt::bits_as<long long>(x); }
inline double __longlong_as_double(long long x) { return musa_simt::bits_as<double>(x); }
inline int __double2hiint(double x) { return static_cast<int>(musa_simt::bits_as<uint64_t>(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(musa_simt::bits_as<uint64_t>(x)); }
inline double __hiloint2double(int high, int low) {
  return musa_simt::bits_as<double>(
      static_cast<uint64_t>(static_cast<uint32_t>(high)) << 32 | static_cast<uint32_t>(low));
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}
inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 |
      __brev(static_cast<unsigned>(x >> 32));
}
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32); }
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<int64_t>(a) * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline long long __mul64hi(long long a, long long b) {
  return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
inline unsigned __sad(int a, int b, unsigned sum) { return sum + static_cast<unsigned>(a < b ? b - a : a - b); }
inline unsigned __usad(unsigned a, unsigned b, unsigned sum) { return sum + (a < b ? b - a : a - b); }
// The average, rounded down, or up in the r variants.
inline int __hadd(int a, int b) { return static_cast<int>((static_cast<int64_t>(a) + b) >> 1); }
inline int __rhadd(int a, int b) { return static_cast<int>((static_cast<int64_t>(a) + b + 1) >> 1); }
inline unsigned __uhadd(unsigned a, unsigned b) { return static_cast<unsigned>((static_cast<uint64_t>(a) + b) >> 1); }
inline unsigned __urhadd(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<uint64_t>(a) + b + 1) >> 1);
}
inline int __mul24(int a, int b) { return a * b; }
inline unsigned __umul24(unsigned a, unsigned b) { return a * b; }
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
// Byte i of the result is the byte of y:x that the i-th nibble of the selector selects.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const uint64_t bytes = static_cast<uint64_t>(y) << 32 | x;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned which = selector >> (4 * i) & 7; // the lower three bits of the nibble
    result |= (static_cast<unsigned>(bytes >> (8 * which)) & 0xff) << (8 * i);
  }
  return result;
}

// ---- memory

template <class T>
inline T __ldg(const T* place) {
  return *place;
}
template <class T>
inline T __ldcs(const T* place) {
  return *place;
}
template <class T>
inline T __ldcg(const T* place) {
  return *place;
}
template <class T>
inline T __ldca(const T* place) {
  return *place;
}
template <class T>
inline T __ldlu(const T* place) {
  return *place;
}
template <class T>
inline T __ldcv(const T* place) {
  return *static_cast<const volatile T*>(place);
}
template <class T>
inline void __stwb(T* place, T value) {
  *place = value;
}
template <class T>
inline void __stwt(T* place, T value) {
  *place = value;
}
template <class T>
inline void __stcs(T* place, T value) {
  *place = value;
}
template <class T>
inline void __stcg(T* place, T value) {
  *place = value;
}

// Functions that exist only on the device for a two-pass compiler, so that a program may define a host function with
// the same signature. Both are in one program here: as a template, this one is not a redefinition, and the program's
// is preferred. A function of the C library would be preferred too, so names in C23 (sinpi, cospi, rsqrt) are plain
// functions; otherwise kernels would call newer C libraries.
#define MUSA_SIMT_DEVICE_ONLY \
  template <class = void> \
  inline

// ---- floating-point functions that C lacks

inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
MUSA_SIMT_DEVICE_ONLY float rcbrtf(float x) { return 1.0f / std::cbrt(x); }
MUSA_SIMT_DEVICE_ONLY double rcbrt(double x) { return 1.0 / std::cbrt(x); }
MUSA_SIMT_DEVICE_ONLY float fdividef(float x, float y) { return x / y; }

// Vector norms. Squares of floats fit into double; those of doubles may overflow, so the numbers are first divided by
// a power of two. An infinite number makes the norm infinite, even if others are NaN.
namespace musa_simt {
inline double length(int count, const double* numbers) {
  double largest = 0;
  for (int i = 0; i < count; ++i) {
    if (std::isinf(numbers[i])) {
      return std::numeric_limits<double>::infinity();
    }
    largest = std::fmax(largest, std::fabs(numbers[i]));
  }
  const int exponent = largest > 0 ? std::ilogb(largest) : 0;
  double sum = 0;
  for (int i = 0; i < count; ++i) {
    const double scaled = std::ldexp(numbers[i], -exponent);
    sum += scaled * scaled;
  }
  return std::ldexp(std::sqrt(sum), exponent);
}
inline double length(int count, const float* numbers) {
  double sum = 0;
  for (int i = 0; i < count; ++i) {
    if (std::isinf(numbers[i])) {
      return std::numeric_limits<double>::infinity();
    }
    sum += static_cast<double>(numbers[i]) * numbers[i];
  }
  return std::sqrt(sum);
}
template <class T, class... Rest>
inline double length_of(T first, Rest... rest) {
  const T numbers[] = {first, rest...};
  return length(1 + static_cast<int>(sizeof...(rest)), numbers);
}
} // namespace musa_simt

MUSA_SIMT_DEVICE_ONLY double norm3d(double a, double b, double c) { return musa_simt::length_of(a, b, c); }
MUSA_SIMT_DEVICE_ONLY double norm4d(double a, double b, double c, double d) { return musa_simt::length_of(a, b, c, d); }
MUSA_SIMT_DEVICE_ONLY float normf(int count, const float* p) { return static_cast<float>(musa_simt::length(count, p)); }
MUSA_SIMT_DEVICE_ONLY float norm3df(float a, float b, float c) {
  return static_cast<float>(musa_simt::length_of(a, b, c));
}
MUSA_SIMT_DEVICE_ONLY float norm4df(float a, float b, float c, float d) {
  return static_cast<float>(musa_simt::length_of(a, b, c, d));
}
MUSA_SIMT_DEVICE_ONLY double rnorm3d(double a, double b, double c) { return 1 / norm3d(a, b, c); }
MUSA_SIMT_DEVICE_ONLY double rnorm4d(double a, double b, double c, double d) { return 1 / norm4d(a, b, c, d); }
MUSA_SIMT_DEVICE_ONLY double rhypot(double a, double b) { return 1 / std::hypot(a, b); }
MUSA_SIMT_DEVICE_ONLY float rnormf(int count, const float* p) {
  return static_cast<float>(1 / musa_simt::length(count, p));
}
MUSA_SIMT_DEVICE_ONLY float rnorm3df(float a, float b, float c) {
  return static_cast<float>(1 / musa_simt::length_of(a, b, c));
}
MUSA_SIMT_DEVICE_ONLY float rnorm4df(float a, float b, float c, float d) {
  return static_cast<float>(1 / musa_simt::length_of(a, b, c, d));
}
MUSA_SIMT_DEVICE_ONLY float rhypotf(float a, float b) { return static_cast<float>(1 / musa_simt::length_of(a, b)); }

#if __cplusplus >= 201703L // older libraries have no Bessel functions
MUSA_SIMT_DEVICE_ONLY double cyl_bessel_i0(double x) { return std::cyl_bessel_i(0.0, std::fabs(x)); }
MUSA_SIMT_DEVICE_ONLY double cyl_bessel_i1(double x) { return std::copysign(std::cyl_bessel_i(1.0, std::fabs(x)), x); }
MUSA_SIMT_DEVICE_ONLY float cyl_bessel_i0f(float x) { return static_cast<float>(cyl_bessel_i0(x)); }
MUSA_SIMT_DEVICE_ONLY float cyl_bessel_i1f(float x) { return static_cast<float>(cyl_bessel_i1(x)); }
#endif
MUSA_SIMT_DEVICE_ONLY float saturate(float x) { return x > 0 ? std::min(x, 1.0f) : 0.0f; }
inline float __saturatef(float x) { return saturate(x); }
MUSA_SIMT_DEVICE_ONLY float normcdff(float x) {
  return static_cast<float>(0.5 * std::erfc(-static_cast<double>(x) * M_SQRT1_2));
}
MUSA_SIMT_DEVICE_ONLY double normcdf(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }
MUSA_SIMT_DEVICE_ONLY double erfcx(double x) {
  if (x < 25) {
    return std::exp(x * x) * std::erfc(x);
  }
  // exp(x * x) is about to overflow: five terms of the asymptotic series; the next term is below the last digit.
  const double r = 1 / (2 * x * x);
  return (1 - r * (1 - 3 * r * (1 - 5 * r * (1 - 7 * r)))) * M_2_SQRTPI / (2 * x);
}
MUSA_SIMT_DEVICE_ONLY float erfcxf(float x) { return static_cast<float>(erfcx(static_cast<double>(x))); }

// sin(pi x) and cos(pi x), exact if x is a multiple of one half.
inline double sinpi(double x) {
  const double rest = x - 2 * std::nearbyint(x / 2); // in [-1, 1]
  if (rest == 0 || rest == 1 || rest == -1) {
    return std::copysign(0.0, x);
  }
  return std::fabs(rest) <= 0.25 ? std::sin(M_PI * rest)
      : std::fabs(rest) <= 0.75  ? std::copysign(std::cos(M_PI * (std::fabs(rest) - 0.5)), rest)
                                 : std::copysign(std::sin(M_PI * (1 - std::fabs(rest))), rest);
}
inline double cospi(double x) {
  const double rest = std::fabs(x - 2 * std::nearbyint(x / 2)); // in [0, 1]
  return rest <= 0.25 ? std::cos(M_PI * rest)
      : rest <= 0.75  ? std::sin(M_PI * (0.5 - rest))
                      : -std::cos(M_PI * (1 - rest));
}
inline float sinpif(float x) { return static_cast<float>(sinpi(static_cast<double>(x))); }
inline float cospif(float x) { return static_cast<float>(cospi(static_cast<double>(x))); }
MUSA_SIMT_DEVICE_ONLY void sincospi(double x, double* sine, double* cosine) { *sine = sinpi(x), *cosine = cospi(x); }
MUSA_SIMT_DEVICE_ONLY void sincospif(float x, float* sine, float* cosine) { *sine = sinpif(x), *cosine = cospif(x); }

// Quantile of the normal distribution, with Halley's method from an approximation for the tail or the center.
MUSA_SIMT_DEVICE_ONLY double normcdfinv(double p) {
  if (!(p > 0 && p < 1)) {
    return p == 0 ? -std::numeric_limits<double>::infinity()
        : p == 1  ? std::numeric_limits<double>::infinity()
                  : std::numeric_limits<double>::quiet_NaN();
  }
  const double tail = std::min(p, 1 - p);
  double x = (0.5 - tail) * 2.5; // initial approximation in the center
  if (tail < 0.1) {
    const double t = std::sqrt(-2 * std::log(tail));
    x = t - (std::log(t) + 0.92) / t;
  }
  for (int i = 0; i < 5; ++i) {
    const double step = (0.5 * std::erfc(x * M_SQRT1_2) - tail) * std::sqrt(2 * M_PI) * std::exp(x * x / 2);
    x += step / (1 - x * step / 2);
  }
  return p < 0.5 ? -x : x;
}
MUSA_SIMT_DEVICE_ONLY float normcdfinvf(float p) { return static_cast<float>(normcdfinv(static_cast<double>(p))); }
MUSA_SIMT_DEVICE_ONLY double erfinv(double x) { return normcdfinv((x + 1) / 2) * M_SQRT1_2; }
MUSA_SIMT_DEVICE_ONLY double erfcinv(double x) { return -normcdfinv(x / 2) * M_SQRT1_2; }
MUSA_SIMT_DEVICE_ONLY float erfinvf(float x) { return static_cast<float>(erfinv(static_cast<double>(x))); }
MUSA_SIMT_DEVICE_ONLY float erfcinvf(float x) { return static_cast<float>(erfcinv(static_cast<double>(x))); }

// On a GPU faster and less accurate; here as accurate as the standard functions.
inline float __expf(float x) { return std::exp(x); }
inline float __exp10f(float x) { return std::pow(10.0f, x); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __log10f(float x) { return std::log10(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __tanf(float x) { return std::tan(x); }
inline void __sincosf(float x, float* sine, float* cosine) { *sine = std::sin(x), *cosine = std::cos(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __fma_rn(double x, double y, double z) { return std::fma(x, y, z); }

// Rounds and clamps to the range of the type, because casts of out-of-range values are undefined in C++.
namespace musa_simt {
template <class To, class From>
inline To to_integer(From rounded) {
  if (std::isnan(rounded)) {
    return 0;
  }
  if (rounded <= static_cast<From>(std::numeric_limits<To>::min())) {
    return std::numeric_limits<To>::min();
  }
  return rounded >= static_cast<From>(std::numeric_limits<To>::max()) ? std::numeric_limits<To>::max()
                                                                      : static_cast<To>(rounded);
}
} // namespace musa_simt
inline int __float2int_rn(float x) { return musa_simt::to_integer<int>(std::nearbyint(x)); }
inline int __float2int_rz(float x) { return musa_simt::to_integer<int>(std::trunc(x)); }
inline int __float2int_rd(float x) { return musa_simt::to_integer<int>(std::floor(x)); }
inline int __float2int_ru(float x) { return musa_simt::to_integer<int>(std::ceil(x)); }
inline unsigned __float2uint_rn(float x) { return musa_simt::to_integer<unsigned>(std::nearbyint(x)); }
inline unsigned __float2uint_rz(float x) { return musa_simt::to_integer<unsigned>(std::trunc(x)); }
inline long long __float2ll_rn(float x) { return musa_simt::to_integer<long long>(std::nearbyint(x)); }
inline int __double2int_rn(double x) { return musa_simt::to_integer<int>(std::nearbyint(x)); }
inline int __double2int_rz(double x) { return musa_simt::to_integer<int>(std::trunc(x)); }
inline long long __double2ll_rn(double x) { return musa_simt::to_integer<long long>(std::nearbyint(x)); }
inline unsigned __float2uint_rd(float x) { return musa_simt::to_integer<unsigned>(std::floor(x)); }
inline unsigned __float2uint_ru(float x) { return musa_simt::to_integer<unsigned>(std::ceil(x)); }
inline long long __float2ll_rz(float x) { return musa_simt::to_integer<long long>(std::trunc(x)); }
inline unsigned long long __float2ull_rn(float x) {
  return musa_simt::to_integer<unsigned long long>(std::nearbyint(x));
}
inline unsigned long long __float2ull_rz(float x) { return musa_simt::to_integer<unsigned long long>(std::trunc(x)); }
inline int __double2int_rd(double x) { return musa_simt::to_integer<int>(std::floor(x)); }
inline int __double2int_ru(double x) { return musa_simt::to_integer<int>(std::ceil(x)); }
inline unsigned __double2uint_rn(double x) { return musa_simt::to_integer<unsigned>(std::nearbyint(x)); }
inline unsigned __double2uint_rz(double x) { return musa_simt::to_integer<unsigned>(std::trunc(x)); }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
inline double __ll2double_rn(long long x) { return static_cast<double>(x); }
inline double __uint2double_rn(unsigned x) { return x; }
inline float __int2float_rz(int x) {
  const float nearest = static_cast<float>(x);
  return std::fabs(static_cast<double>(nearest)) > std::fabs(static_cast<double>(x)) ? std::nextafter(nearest, 0.0f)
                                                                                     : nearest;
}
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline double __int2double_rn(int x) { return x; }
inline float __double2float_rn(double x) { return static_cast<float>(x); }

// ---- minimum and maximum

#define MUSA_SIMT_EXTREMES(T, A, B) \
  inline T min(A a, B b) { return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a); } \
  inline T max(A a, B b) { return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a); }
// The minimum of a signed and an unsigned number of the same size is unsigned.
#define MUSA_SIMT_EXTREMES_OF_BOTH(SIGNED, UNSIGNED) \
  MUSA_SIMT_EXTREMES(SIGNED, SIGNED, SIGNED) \
  MUSA_SIMT_EXTREMES(UNSIGNED, UNSIGNED, UNSIGNED) \
  MUSA_SIMT_EXTREMES(UNSIGNED, SIGNED, UNSIGNED) \
  MUSA_SIMT_EXTREMES(UNSIGNED, UNSIGNED, SIGNED)
MUSA_SIMT_EXTREMES_OF_BOTH(int, unsigned)
MUSA_SIMT_EXTREMES_OF_BOTH(long, unsigned long)
MUSA_SIMT_EXTREMES_OF_BOTH(long long, unsigned long long)
#undef MUSA_SIMT_EXTREMES_OF_BOTH
#undef MUSA_SIMT_EXTREMES
MUSA_SIMT_DEVICE_ONLY unsigned umin(unsigned a, unsigned b) { return min(a, b); }
MUSA_SIMT_DEVICE_ONLY unsigned umax(unsigned a, unsigned b) { return max(a, b); }
MUSA_SIMT_DEVICE_ONLY long long llmin(long long a, long long b) { return min(a, b); }
MUSA_SIMT_DEVICE_ONLY long long llmax(long long a, long long b) { return max(a, b); }
MUSA_SIMT_DEVICE_ONLY unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
MUSA_SIMT_DEVICE_ONLY unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }
#undef MUSA_SIMT_DEVICE_ONLY
// As on a GPU, returns the number if the other operand is NaN.
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }
inline double min(float a, double b) { return std::fmin(static_cast<double>(a), b); }
inline double max(float a, double b) { return std::fmax(static_cast<double>(a), b); }
inline double min(double a, float b) { return std::fmin(a, static_cast<double>(b)); }
inline double max(double a, float b) { return std::fmax(a, static_cast<double>(b)); }

// ---- clocks: host time, so that loops that wait for time to pass terminate

inline long long clock64() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}
namespace musa_simt {
// clock() in kernels and in host code.
inline clock_t clock_ticks() {
  return musa_simt_in_kernel() ? static_cast<clock_t>(clock64()) : (::clock)(); // in parentheses, else mcc rewrites it
}
} // namespace musa_simt
inline void __nanosleep(unsigned) {}
