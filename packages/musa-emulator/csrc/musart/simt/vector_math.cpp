// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// expf for kernels, scalar and vectorized. A thread of a pointwise kernel uses vectors of four floats, for which
// glibc's libmvec has no version with fused multiply-add; on processors with AVX-512 this version takes half the
// time.
#include <driver_types.h>

#include <cmath>

#if defined(__x86_64__) && defined(__GLIBC__)

#include <immintrin.h>

// By the vector function ABI of x86-64, the compiler derives these names from musa_simt_expf: b, c, d, e are SSE,
// AVX, AVX2 and AVX-512, followed by the number of floats. mcc's simt/math.h declares the function.
#define MUSA_SIMT_FORWARDED(vector) \
  asm(".text\n.globl " vector "_musa_simt_expf\n.type " vector "_musa_simt_expf, @function\n" vector \
      "_musa_simt_expf:\n\tjmp *" vector "_expf@GOTPCREL(%rip)\n.size " vector "_musa_simt_expf, .-" vector \
      "_musa_simt_expf\n");
MUSA_SIMT_FORWARDED("_ZGVcN8v")
MUSA_SIMT_FORWARDED("_ZGVdN8v")
MUSA_SIMT_FORWARDED("_ZGVeN16v")
#undef MUSA_SIMT_FORWARDED

extern "C" __m128 _ZGVbN4v_expf(__m128 x); // in libmvec, which libm links

namespace {

// exp(x) = 2^n * exp(r) with integer n and |r| <= ln(2) / 2. Constants are stored as whole vectors, which
// instructions use as memory operands; a single float would have to be broadcast first.
struct Constants {
  __m128 lowest, highest; // outside, the result is 0 or infinite
  __m128 log2_e, minus_ln2, minus_ln2_rest;
  __m128 terms[5]; // approximates (exp(r) - 1 - r) / r^2 with an error of at most 6.5e-8; highest power first
  __m128 one;
};

constexpr __m128 four(float x) { return __m128{x, x, x, x}; }

constexpr Constants kConstants = {
    four(-104.0f),
    four(89.0f),
    four(1.44269504f),
    four(-0.693147182f),
    four(1.90465430e-9f),
    {four(0.00139261840f), four(0.00836317893f), four(0.0416665561f), four(0.166665763f), four(0.5f)},
    four(1.0f)};

// The error is at most 1 unit in the last place.
[[gnu::target("avx512f,avx512vl,avx512dq,fma")]] __m128 expf_avx512(__m128 x) {
  // Hides the constants from GCC, which would otherwise load and broadcast each as a single float.
  const Constants* constants = &kConstants;
  asm("" : "+r"(constants));
  const Constants& of = *constants;
  x = _mm_min_ps(of.highest, _mm_max_ps(of.lowest, x)); // returns the second operand if one is NaN
  const __m128 n = _mm_roundscale_ps(_mm_mul_ps(x, of.log2_e), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m128 r = _mm_fmadd_ps(n, of.minus_ln2_rest, _mm_fmadd_ps(n, of.minus_ln2, x));
  __m128 sum = of.terms[0];
  for (int i = 1; i < 5; ++i) {
    sum = _mm_fmadd_ps(sum, r, of.terms[i]);
  }
  sum = _mm_fmadd_ps(_mm_fmadd_ps(sum, r, of.one), r, of.one);
  return _mm_scalef_ps(sum, n);
}

using Function = __m128 (*)(__m128);

// Initialized when the library is loaded, before any kernel runs.
const Function chosen = [] {
  __builtin_cpu_init();
  const bool has =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return has ? expf_avx512 : _ZGVbN4v_expf;
}();

} // namespace

extern "C" MUSA_PUBLIC __m128 _ZGVbN4v_musa_simt_expf(__m128 x) { return chosen(x); }

extern "C" MUSA_PUBLIC float musa_simt_expf(float x) { return expf(x); }

#endif
