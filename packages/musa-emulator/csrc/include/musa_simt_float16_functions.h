// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The functions for 16-bit numbers and pairs of them, as one macro for both formats. Do not include this header
// directly.
#ifndef MUSA_SIMT_FLOAT16_FUNCTIONS_H
#define MUSA_SIMT_FLOAT16_FUNCTIONS_H
#ifdef __cplusplus

#include "musa_simt_float16.h"

#define MUSA_SIMT_FLOAT16_INLINE inline __host__ __device__

// `N` is the number type, `N2` the pair type; `name` is the part of conversion names for N.
#define MUSA_SIMT_FLOAT16_FUNCTIONS(N, N2, name) \
  MUSA_SIMT_FLOAT16_INLINE N __float2##name(float x) { return N(x); } \
  MUSA_SIMT_FLOAT16_INLINE N __float2##name##_rn(float x) { return N(x); } \
  MUSA_SIMT_FLOAT16_INLINE N __float2##name##_rz(float x) { \
    return ::musa_simt_float16::rounded<N>(x, ::musa_simt_float16::Toward::Zero); \
  } \
  MUSA_SIMT_FLOAT16_INLINE N __float2##name##_ru(float x) { \
    return ::musa_simt_float16::rounded<N>(x, ::musa_simt_float16::Toward::Up); \
  } \
  MUSA_SIMT_FLOAT16_INLINE N __float2##name##_rd(float x) { \
    return ::musa_simt_float16::rounded<N>(x, ::musa_simt_float16::Toward::Down); \
  } \
  MUSA_SIMT_FLOAT16_INLINE N __double2##name(double x) { return N(static_cast<float>(x)); } \
  MUSA_SIMT_FLOAT16_INLINE float __##name##2float(N x) { return float(x); } \
  MUSA_SIMT_FLOAT16_INLINE N __int2##name##_rn(int x) { return N(static_cast<float>(x)); } \
  MUSA_SIMT_FLOAT16_INLINE N __int2##name##_rz(int x) { \
    return ::musa_simt_float16::rounded<N>(static_cast<double>(x), ::musa_simt_float16::Toward::Zero); \
  } \
  MUSA_SIMT_FLOAT16_INLINE int __##name##2int_rn(N x) { \
    return ::musa_simt_float16::integer_of<int>(std::nearbyint(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE int __##name##2int_rz(N x) { \
    return ::musa_simt_float16::integer_of<int>(std::trunc(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE int __##name##2int_rd(N x) { \
    return ::musa_simt_float16::integer_of<int>(std::floor(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE int __##name##2int_ru(N x) { \
    return ::musa_simt_float16::integer_of<int>(std::ceil(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE N __uint2##name##_rn(unsigned x) { return N(static_cast<float>(x)); } \
  MUSA_SIMT_FLOAT16_INLINE N __uint2##name##_rz(unsigned x) { \
    return ::musa_simt_float16::rounded<N>(static_cast<double>(x), ::musa_simt_float16::Toward::Zero); \
  } \
  MUSA_SIMT_FLOAT16_INLINE unsigned __##name##2uint_rn(N x) { \
    return ::musa_simt_float16::integer_of<unsigned>(std::nearbyint(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE unsigned __##name##2uint_rz(N x) { \
    return ::musa_simt_float16::integer_of<unsigned>(std::trunc(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE unsigned __##name##2uint_rd(N x) { \
    return ::musa_simt_float16::integer_of<unsigned>(std::floor(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE unsigned __##name##2uint_ru(N x) { \
    return ::musa_simt_float16::integer_of<unsigned>(std::ceil(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE N __short2##name##_rn(short x) { return N(static_cast<float>(x)); } \
  MUSA_SIMT_FLOAT16_INLINE N __short2##name##_rz(short x) { \
    return ::musa_simt_float16::rounded<N>(static_cast<double>(x), ::musa_simt_float16::Toward::Zero); \
  } \
  MUSA_SIMT_FLOAT16_INLINE short __##name##2short_rn(N x) { \
    return ::musa_simt_float16::integer_of<short>(std::nearbyint(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE short __##name##2short_rz(N x) { \
    return ::musa_simt_float16::integer_of<short>(std::trunc(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE short __##name##2short_rd(N x) { \
    return ::musa_simt_float16::integer_of<short>(std::floor(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE short __##name##2short_ru(N x) { \
    return ::musa_simt_float16::integer_of<short>(std::ceil(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE N __ushort2##name##_rn(unsigned short x) { return N(static_cast<float>(x)); } \
  MUSA_SIMT_FLOAT16_INLINE N __ushort2##name##_rz(unsigned short x) { \
    return ::musa_simt_float16::rounded<N>(static_cast<double>(x), ::musa_simt_float16::Toward::Zero); \
  } \
  MUSA_SIMT_FLOAT16_INLINE unsigned short __##name##2ushort_rn(N x) { \
    return ::musa_simt_float16::integer_of<unsigned short>(std::nearbyint(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE unsigned short __##name##2ushort_rz(N x) { \
    return ::musa_simt_float16::integer_of<unsigned short>(std::trunc(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE unsigned short __##name##2ushort_rd(N x) { \
    return ::musa_simt_float16::integer_of<unsigned short>(std::floor(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE unsigned short __##name##2ushort_ru(N x) { \
    return ::musa_simt_float16::integer_of<unsigned short>(std::ceil(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE N __ll2##name##_rn(long long x) { return N(static_cast<float>(x)); } \
  MUSA_SIMT_FLOAT16_INLINE N __ll2##name##_rz(long long x) { \
    return ::musa_simt_float16::rounded<N>(static_cast<double>(x), ::musa_simt_float16::Toward::Zero); \
  } \
  MUSA_SIMT_FLOAT16_INLINE long long __##name##2ll_rn(N x) { \
    return ::musa_simt_float16::integer_of<long long>(std::nearbyint(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE long long __##name##2ll_rz(N x) { \
    return ::musa_simt_float16::integer_of<long long>(std::trunc(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE long long __##name##2ll_rd(N x) { \
    return ::musa_simt_float16::integer_of<long long>(std::floor(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE long long __##name##2ll_ru(N x) { \
    return ::musa_simt_float16::integer_of<long long>(std::ceil(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE N __ull2##name##_rn(unsigned long long x) { return N(static_cast<float>(x)); } \
  MUSA_SIMT_FLOAT16_INLINE N __ull2##name##_rz(unsigned long long x) { \
    return ::musa_simt_float16::rounded<N>(static_cast<double>(x), ::musa_simt_float16::Toward::Zero); \
  } \
  MUSA_SIMT_FLOAT16_INLINE unsigned long long __##name##2ull_rn(N x) { \
    return ::musa_simt_float16::integer_of<unsigned long long>(std::nearbyint(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE unsigned long long __##name##2ull_rz(N x) { \
    return ::musa_simt_float16::integer_of<unsigned long long>(std::trunc(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE unsigned long long __##name##2ull_rd(N x) { \
    return ::musa_simt_float16::integer_of<unsigned long long>(std::floor(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE unsigned long long __##name##2ull_ru(N x) { \
    return ::musa_simt_float16::integer_of<unsigned long long>(std::ceil(float(x))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE N __ushort_as_##name(unsigned short x) { return N::from_bits(x); } \
  MUSA_SIMT_FLOAT16_INLINE N __short_as_##name(short x) { return N::from_bits(static_cast<unsigned short>(x)); } \
  MUSA_SIMT_FLOAT16_INLINE unsigned short __##name##_as_ushort(N x) { return x.__x; } \
  MUSA_SIMT_FLOAT16_INLINE short __##name##_as_short(N x) { return static_cast<short>(x.__x); } \
  MUSA_SIMT_FLOAT16_INLINE N __hadd(N a, N b) { return a + b; } \
  MUSA_SIMT_FLOAT16_INLINE N __hadd_rn(N a, N b) { return a + b; } \
  MUSA_SIMT_FLOAT16_INLINE N __hadd_sat(N a, N b) { return N(::musa_simt_float16::clamped(float(a + b))); } \
  MUSA_SIMT_FLOAT16_INLINE N __hsub(N a, N b) { return a - b; } \
  MUSA_SIMT_FLOAT16_INLINE N __hsub_rn(N a, N b) { return a - b; } \
  MUSA_SIMT_FLOAT16_INLINE N __hsub_sat(N a, N b) { return N(::musa_simt_float16::clamped(float(a - b))); } \
  MUSA_SIMT_FLOAT16_INLINE N __hmul(N a, N b) { return a * b; } \
  MUSA_SIMT_FLOAT16_INLINE N __hmul_rn(N a, N b) { return a * b; } \
  MUSA_SIMT_FLOAT16_INLINE N __hmul_sat(N a, N b) { return N(::musa_simt_float16::clamped(float(a * b))); } \
  MUSA_SIMT_FLOAT16_INLINE N __hdiv(N a, N b) { return a / b; } \
  MUSA_SIMT_FLOAT16_INLINE N __hneg(N a) { return -a; } \
  MUSA_SIMT_FLOAT16_INLINE N __habs(N a) { return N::from_bits(static_cast<unsigned short>(a.__x & 0x7fffu)); } \
  MUSA_SIMT_FLOAT16_INLINE N __hfma(N a, N b, N c) { return N(std::fma(float(a), float(b), float(c))); } \
  MUSA_SIMT_FLOAT16_INLINE N __hfma_sat(N a, N b, N c) { \
    return N(::musa_simt_float16::clamped(float(__hfma(a, b, c)))); \
  } \
  MUSA_SIMT_FLOAT16_INLINE N __hfma_relu(N a, N b, N c) { \
    return __hfma(a, b, c) < N(0.0f) ? N(0.0f) : __hfma(a, b, c); \
  } \
  MUSA_SIMT_FLOAT16_INLINE bool __heq(N a, N b) { return float(a) == float(b); } \
  MUSA_SIMT_FLOAT16_INLINE bool __hequ(N a, N b) { \
    return std::isunordered(float(a), float(b)) || float(a) == float(b); \
  } \
  MUSA_SIMT_FLOAT16_INLINE bool __hne(N a, N b) { return float(a) < float(b) || float(a) > float(b); } \
  MUSA_SIMT_FLOAT16_INLINE bool __hneu(N a, N b) { \
    return std::isunordered(float(a), float(b)) || float(a) < float(b) || float(a) > float(b); \
  } \
  MUSA_SIMT_FLOAT16_INLINE bool __hlt(N a, N b) { return float(a) < float(b); } \
  MUSA_SIMT_FLOAT16_INLINE bool __hltu(N a, N b) { \
    return std::isunordered(float(a), float(b)) || float(a) < float(b); \
  } \
  MUSA_SIMT_FLOAT16_INLINE bool __hle(N a, N b) { return float(a) <= float(b); } \
  MUSA_SIMT_FLOAT16_INLINE bool __hleu(N a, N b) { \
    return std::isunordered(float(a), float(b)) || float(a) <= float(b); \
  } \
  MUSA_SIMT_FLOAT16_INLINE bool __hgt(N a, N b) { return float(a) > float(b); } \
  MUSA_SIMT_FLOAT16_INLINE bool __hgtu(N a, N b) { \
    return std::isunordered(float(a), float(b)) || float(a) > float(b); \
  } \
  MUSA_SIMT_FLOAT16_INLINE bool __hge(N a, N b) { return float(a) >= float(b); } \
  MUSA_SIMT_FLOAT16_INLINE bool __hgeu(N a, N b) { \
    return std::isunordered(float(a), float(b)) || float(a) >= float(b); \
  } \
  MUSA_SIMT_FLOAT16_INLINE bool __hisnan(N a) { return std::isnan(float(a)); } \
  MUSA_SIMT_FLOAT16_INLINE int __hisinf(N a) { return std::isinf(float(a)) ? (float(a) > 0 ? 1 : -1) : 0; } \
  MUSA_SIMT_FLOAT16_INLINE N __hmax(N a, N b) { return N(std::fmax(float(a), float(b))); } \
  MUSA_SIMT_FLOAT16_INLINE N __hmin(N a, N b) { return N(std::fmin(float(a), float(b))); } \
  MUSA_SIMT_FLOAT16_INLINE N __hmax_nan(N a, N b) { return __hisnan(a) ? a : __hisnan(b) ? b : __hmax(a, b); } \
  MUSA_SIMT_FLOAT16_INLINE N __hmin_nan(N a, N b) { return __hisnan(a) ? a : __hisnan(b) ? b : __hmin(a, b); } \
  MUSA_SIMT_FLOAT16_INLINE N hexp(N a) { return N(std::exp(float(a))); } \
  MUSA_SIMT_FLOAT16_INLINE N hexp2(N a) { return N(std::exp2(float(a))); } \
  MUSA_SIMT_FLOAT16_INLINE N hexp10(N a) { return N(std::pow(10.0f, float(a))); } \
  MUSA_SIMT_FLOAT16_INLINE N hlog(N a) { return N(std::log(float(a))); } \
  MUSA_SIMT_FLOAT16_INLINE N hlog2(N a) { return N(std::log2(float(a))); } \
  MUSA_SIMT_FLOAT16_INLINE N hlog10(N a) { return N(std::log10(float(a))); } \
  MUSA_SIMT_FLOAT16_INLINE N hsqrt(N a) { return N(std::sqrt(float(a))); } \
  MUSA_SIMT_FLOAT16_INLINE N hrsqrt(N a) { return N(1.0f / std::sqrt(float(a))); } \
  MUSA_SIMT_FLOAT16_INLINE N hrcp(N a) { return N(1.0f / float(a)); } \
  MUSA_SIMT_FLOAT16_INLINE N hsin(N a) { return N(std::sin(float(a))); } \
  MUSA_SIMT_FLOAT16_INLINE N hcos(N a) { return N(std::cos(float(a))); } \
  MUSA_SIMT_FLOAT16_INLINE N htanh(N a) { return N(std::tanh(float(a))); } \
  MUSA_SIMT_FLOAT16_INLINE N hfloor(N a) { return N(std::floor(float(a))); } \
  MUSA_SIMT_FLOAT16_INLINE N hceil(N a) { return N(std::ceil(float(a))); } \
  MUSA_SIMT_FLOAT16_INLINE N htrunc(N a) { return N(std::trunc(float(a))); } \
  MUSA_SIMT_FLOAT16_INLINE N hrint(N a) { return N(std::nearbyint(float(a))); } \
  MUSA_SIMT_FLOAT16_INLINE N2 __halves2##name##2(N a, N b) { return {a, b}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __##name##2##name##2(N a) { return {a, a}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 make_##name##2(N a, N b) { return {a, b}; } \
  MUSA_SIMT_FLOAT16_INLINE N __low2##name(N2 a) { return a.x; } \
  MUSA_SIMT_FLOAT16_INLINE N __high2##name(N2 a) { return a.y; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __low2##name##2(N2 a) { return {a.x, a.x}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __high2##name##2(N2 a) { return {a.y, a.y}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __lows2##name##2(N2 a, N2 b) { return {a.x, b.x}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __highs2##name##2(N2 a, N2 b) { return {a.y, b.y}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __lowhigh2highlow(N2 a) { return {a.y, a.x}; } \
  MUSA_SIMT_FLOAT16_INLINE float __low2float(N2 a) { return float(a.x); } \
  MUSA_SIMT_FLOAT16_INLINE float __high2float(N2 a) { return float(a.y); } \
  MUSA_SIMT_FLOAT16_INLINE N2 __float2##name##2_rn(float a) { return {N(a), N(a)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __floats2##name##2_rn(float a, float b) { return {N(a), N(b)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __float22##name##2_rn(float2 a) { return {N(a.x), N(a.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE float2 __##name##22float2(N2 a) { return make_float2(float(a.x), float(a.y)); } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hadd2(N2 a, N2 b) { return a + b; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hadd2_rn(N2 a, N2 b) { return a + b; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hadd2_sat(N2 a, N2 b) { return {__hadd_sat(a.x, b.x), __hadd_sat(a.y, b.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hsub2(N2 a, N2 b) { return a - b; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hsub2_rn(N2 a, N2 b) { return a - b; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hsub2_sat(N2 a, N2 b) { return {__hsub_sat(a.x, b.x), __hsub_sat(a.y, b.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hmul2(N2 a, N2 b) { return a * b; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hmul2_rn(N2 a, N2 b) { return a * b; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hmul2_sat(N2 a, N2 b) { return {__hmul_sat(a.x, b.x), __hmul_sat(a.y, b.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __h2div(N2 a, N2 b) { return a / b; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hneg2(N2 a) { return -a; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __habs2(N2 a) { return {__habs(a.x), __habs(a.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hfma2(N2 a, N2 b, N2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hfma2_sat(N2 a, N2 b, N2 c) { \
    return {__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y)}; \
  } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hfma2_relu(N2 a, N2 b, N2 c) { \
    return {__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)}; \
  } \
  MUSA_SIMT_FLOAT16_INLINE N2 __heq2(N2 a, N2 b) { return {N(__heq(a.x, b.x)), N(__heq(a.y, b.y))}; } \
  MUSA_SIMT_FLOAT16_INLINE bool __hbeq2(N2 a, N2 b) { return __heq(a.x, b.x) && __heq(a.y, b.y); } \
  MUSA_SIMT_FLOAT16_INLINE unsigned __heq2_mask(N2 a, N2 b) { \
    return (__heq(a.x, b.x) ? 0xffffu : 0u) | (__heq(a.y, b.y) ? 0xffff0000u : 0u); \
  } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hequ2(N2 a, N2 b) { return {N(__hequ(a.x, b.x)), N(__hequ(a.y, b.y))}; } \
  MUSA_SIMT_FLOAT16_INLINE bool __hbequ2(N2 a, N2 b) { return __hequ(a.x, b.x) && __hequ(a.y, b.y); } \
  MUSA_SIMT_FLOAT16_INLINE unsigned __hequ2_mask(N2 a, N2 b) { \
    return (__hequ(a.x, b.x) ? 0xffffu : 0u) | (__hequ(a.y, b.y) ? 0xffff0000u : 0u); \
  } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hne2(N2 a, N2 b) { return {N(__hne(a.x, b.x)), N(__hne(a.y, b.y))}; } \
  MUSA_SIMT_FLOAT16_INLINE bool __hbne2(N2 a, N2 b) { return __hne(a.x, b.x) && __hne(a.y, b.y); } \
  MUSA_SIMT_FLOAT16_INLINE unsigned __hne2_mask(N2 a, N2 b) { \
    return (__hne(a.x, b.x) ? 0xffffu : 0u) | (__hne(a.y, b.y) ? 0xffff0000u : 0u); \
  } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hneu2(N2 a, N2 b) { return {N(__hneu(a.x, b.x)), N(__hneu(a.y, b.y))}; } \
  MUSA_SIMT_FLOAT16_INLINE bool __hbneu2(N2 a, N2 b) { return __hneu(a.x, b.x) && __hneu(a.y, b.y); } \
  MUSA_SIMT_FLOAT16_INLINE unsigned __hneu2_mask(N2 a, N2 b) { \
    return (__hneu(a.x, b.x) ? 0xffffu : 0u) | (__hneu(a.y, b.y) ? 0xffff0000u : 0u); \
  } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hlt2(N2 a, N2 b) { return {N(__hlt(a.x, b.x)), N(__hlt(a.y, b.y))}; } \
  MUSA_SIMT_FLOAT16_INLINE bool __hblt2(N2 a, N2 b) { return __hlt(a.x, b.x) && __hlt(a.y, b.y); } \
  MUSA_SIMT_FLOAT16_INLINE unsigned __hlt2_mask(N2 a, N2 b) { \
    return (__hlt(a.x, b.x) ? 0xffffu : 0u) | (__hlt(a.y, b.y) ? 0xffff0000u : 0u); \
  } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hltu2(N2 a, N2 b) { return {N(__hltu(a.x, b.x)), N(__hltu(a.y, b.y))}; } \
  MUSA_SIMT_FLOAT16_INLINE bool __hbltu2(N2 a, N2 b) { return __hltu(a.x, b.x) && __hltu(a.y, b.y); } \
  MUSA_SIMT_FLOAT16_INLINE unsigned __hltu2_mask(N2 a, N2 b) { \
    return (__hltu(a.x, b.x) ? 0xffffu : 0u) | (__hltu(a.y, b.y) ? 0xffff0000u : 0u); \
  } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hle2(N2 a, N2 b) { return {N(__hle(a.x, b.x)), N(__hle(a.y, b.y))}; } \
  MUSA_SIMT_FLOAT16_INLINE bool __hble2(N2 a, N2 b) { return __hle(a.x, b.x) && __hle(a.y, b.y); } \
  MUSA_SIMT_FLOAT16_INLINE unsigned __hle2_mask(N2 a, N2 b) { \
    return (__hle(a.x, b.x) ? 0xffffu : 0u) | (__hle(a.y, b.y) ? 0xffff0000u : 0u); \
  } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hleu2(N2 a, N2 b) { return {N(__hleu(a.x, b.x)), N(__hleu(a.y, b.y))}; } \
  MUSA_SIMT_FLOAT16_INLINE bool __hbleu2(N2 a, N2 b) { return __hleu(a.x, b.x) && __hleu(a.y, b.y); } \
  MUSA_SIMT_FLOAT16_INLINE unsigned __hleu2_mask(N2 a, N2 b) { \
    return (__hleu(a.x, b.x) ? 0xffffu : 0u) | (__hleu(a.y, b.y) ? 0xffff0000u : 0u); \
  } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hgt2(N2 a, N2 b) { return {N(__hgt(a.x, b.x)), N(__hgt(a.y, b.y))}; } \
  MUSA_SIMT_FLOAT16_INLINE bool __hbgt2(N2 a, N2 b) { return __hgt(a.x, b.x) && __hgt(a.y, b.y); } \
  MUSA_SIMT_FLOAT16_INLINE unsigned __hgt2_mask(N2 a, N2 b) { \
    return (__hgt(a.x, b.x) ? 0xffffu : 0u) | (__hgt(a.y, b.y) ? 0xffff0000u : 0u); \
  } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hgtu2(N2 a, N2 b) { return {N(__hgtu(a.x, b.x)), N(__hgtu(a.y, b.y))}; } \
  MUSA_SIMT_FLOAT16_INLINE bool __hbgtu2(N2 a, N2 b) { return __hgtu(a.x, b.x) && __hgtu(a.y, b.y); } \
  MUSA_SIMT_FLOAT16_INLINE unsigned __hgtu2_mask(N2 a, N2 b) { \
    return (__hgtu(a.x, b.x) ? 0xffffu : 0u) | (__hgtu(a.y, b.y) ? 0xffff0000u : 0u); \
  } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hge2(N2 a, N2 b) { return {N(__hge(a.x, b.x)), N(__hge(a.y, b.y))}; } \
  MUSA_SIMT_FLOAT16_INLINE bool __hbge2(N2 a, N2 b) { return __hge(a.x, b.x) && __hge(a.y, b.y); } \
  MUSA_SIMT_FLOAT16_INLINE unsigned __hge2_mask(N2 a, N2 b) { \
    return (__hge(a.x, b.x) ? 0xffffu : 0u) | (__hge(a.y, b.y) ? 0xffff0000u : 0u); \
  } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hgeu2(N2 a, N2 b) { return {N(__hgeu(a.x, b.x)), N(__hgeu(a.y, b.y))}; } \
  MUSA_SIMT_FLOAT16_INLINE bool __hbgeu2(N2 a, N2 b) { return __hgeu(a.x, b.x) && __hgeu(a.y, b.y); } \
  MUSA_SIMT_FLOAT16_INLINE unsigned __hgeu2_mask(N2 a, N2 b) { \
    return (__hgeu(a.x, b.x) ? 0xffffu : 0u) | (__hgeu(a.y, b.y) ? 0xffff0000u : 0u); \
  } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hisnan2(N2 a) { return {N(__hisnan(a.x)), N(__hisnan(a.y))}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hmax2(N2 a, N2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hmax2_nan(N2 a, N2 b) { return {__hmax_nan(a.x, b.x), __hmax_nan(a.y, b.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hmin2(N2 a, N2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 __hmin2_nan(N2 a, N2 b) { return {__hmin_nan(a.x, b.x), __hmin_nan(a.y, b.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 h2exp(N2 a) { return {hexp(a.x), hexp(a.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 h2exp2(N2 a) { return {hexp2(a.x), hexp2(a.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 h2exp10(N2 a) { return {hexp10(a.x), hexp10(a.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 h2log(N2 a) { return {hlog(a.x), hlog(a.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 h2log2(N2 a) { return {hlog2(a.x), hlog2(a.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 h2log10(N2 a) { return {hlog10(a.x), hlog10(a.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 h2sqrt(N2 a) { return {hsqrt(a.x), hsqrt(a.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 h2rsqrt(N2 a) { return {hrsqrt(a.x), hrsqrt(a.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 h2rcp(N2 a) { return {hrcp(a.x), hrcp(a.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 h2sin(N2 a) { return {hsin(a.x), hsin(a.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 h2cos(N2 a) { return {hcos(a.x), hcos(a.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 h2tanh(N2 a) { return {htanh(a.x), htanh(a.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 h2floor(N2 a) { return {hfloor(a.x), hfloor(a.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 h2ceil(N2 a) { return {hceil(a.x), hceil(a.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 h2trunc(N2 a) { return {htrunc(a.x), htrunc(a.y)}; } \
  MUSA_SIMT_FLOAT16_INLINE N2 h2rint(N2 a) { return {hrint(a.x), hrint(a.y)}; }

#endif
#endif
