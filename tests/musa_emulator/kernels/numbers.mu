// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// 16-bit and 8-bit numbers, pairs of them, complex numbers, constants: every representable number where feasible.
#include <math_constants.h>
#include <muComplex.h>
#include <musa_bf16.h>
#include <musa_fp16_mtgpu.h>
#include <musa_fp8.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "check.h"

// Returns the value of the bits by the definition of the format.
double value_of(unsigned bits, int exponent_bits, int fraction_bits, bool has_infinity) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const unsigned fraction = bits & ((1u << fraction_bits) - 1);
  const int exponent = bits >> fraction_bits & ((1u << exponent_bits) - 1);
  const double sign = bits >> (exponent_bits + fraction_bits) & 1 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1 && (has_infinity || fraction == (1u << fraction_bits) - 1)) {
    return has_infinity && fraction == 0 ? sign * INFINITY : NAN;
  }
  return sign *
      std::ldexp(
             exponent == 0 ? fraction : fraction + (1 << fraction_bits),
             (exponent == 0 ? 1 : exponent) - bias - fraction_bits);
}

template <class Number, class To>
void check_format(unsigned count, int exponent_bits, int fraction_bits, bool has_infinity, To to) {
  double before = -1;
  for (unsigned bits = 0; bits < count; ++bits) {
    Number number;
    number.__x = static_cast<decltype(number.__x)>(bits);
    const double value = value_of(bits, exponent_bits, fraction_bits, has_infinity);
    const float got = static_cast<float>(number);
    EXPECT(std::isnan(value) ? std::isnan(got) : got == value && std::signbit(got) == std::signbit(value));
    if (std::isfinite(value)) {
      EXPECT_EQ(to(static_cast<float>(value)), bits);
      if (bits > 0 && bits < count / 2) { // ties round to even
        const float middle = static_cast<float>((before + value) / 2);
        EXPECT_EQ(to(middle), bits % 2 == 0 ? bits : bits - 1);
        EXPECT_EQ(to(std::nextafter(middle, INFINITY)), bits);
        EXPECT_EQ(to(std::nextafter(middle, -INFINITY)), bits - 1);
      }
      before = value;
    }
  }
}

template <class N2>
__global__ void pairs(const float2* a, const float2* b, float2* out, unsigned* masks) {
  const int i = threadIdx.x, n = blockDim.x;
  N2 x(a[i].x, a[i].y), y(b[i].x, b[i].y);
  const auto put = [&](int k, N2 v) { out[k * n + i] = make_float2(float(v.x), float(v.y)); };
  put(0, x + y);
  put(1, __hmul2(x, y));
  put(2, __hfma2(x, y, x));
  put(3, __hmax2(x, y));
  put(4, h2exp(x));
  put(5, __hgt2(x, y));
  N2 sum = x;
  sum += y;
  sum -= x;
  put(6, sum);
  put(7, __shfl_sync(0xffffffffu, x, 3, 32));
  masks[i] = __hgt2_mask(x, y);
}

template <class N, class N2>
void check_pairs() {
  const int n = 64, kinds = 8;
  std::vector<float2> a(n), b(n);
  for (int i = 0; i < n; ++i) {
    a[i] = make_float2(float(N((i - 30) * 0.37f)), float(N(i * 0.11f)));
    b[i] = make_float2(float(N((i % 7) * -1.25f)), float(N(std::sin(float(i)))));
  }
  Array<float2> x(n), y(n), out(kinds * n);
  Array<unsigned> masks(n);
  x = a;
  y = b;
  pairs<N2><<<1, n>>>((const float2*)(float2*)x, (const float2*)(float2*)y, (float2*)out, (unsigned*)masks);
  const std::vector<float2> got = out.host();
  const std::vector<unsigned> mask = masks.host();
  const auto once = [](double value) { return float(N(static_cast<float>(value))); };
  for (int i = 0; i < n; ++i) {
    for (int half = 0; half < 2; ++half) {
      const auto of = [&](float2 v) { return half == 0 ? v.x : v.y; };
      const float p = of(a[i]), q = of(b[i]);
      EXPECT_EQ(of(got[i]), once(p + q));
      EXPECT_EQ(of(got[n + i]), once(p * q));
      EXPECT_EQ(of(got[2 * n + i]), once(std::fma(p, q, p)));
      EXPECT_EQ(of(got[3 * n + i]), std::fmax(p, q));
      EXPECT_EQ(of(got[4 * n + i]), once(std::exp(p)));
      EXPECT_EQ(of(got[5 * n + i]), p > q ? 1.0f : 0.0f);
      EXPECT_EQ(of(got[6 * n + i]), once(once(p + q) - p));
      EXPECT_EQ(of(got[7 * n + i]), of(a[i / 32 * 32 + 3]));
      EXPECT_EQ(mask[i] >> (16 * half) & 0xffffu, p > q ? 0xffffu : 0u);
    }
  }
}

// Functions that C does not have, with operands for which a simple formula overflows or loses digits.
__global__ void functions(double* of_double, float* of_float, long long* of_integers) {
  const float large[] = {3e38f, -1e38f, 1e38f};
  of_double[0] = norm3d(3e300, 0, 4e300) / 1e300;
  of_double[1] = norm4d(1e-310, 1e-310, 1e-310, 1e-310) / 1e-310;
  of_double[2] = norm3d(0, -3e-310, 4e-310) / 1e-310;
  of_double[3] = norm3d(NAN, -INFINITY, 1);
  of_double[4] = rnorm3d(2e300, 1e300, 2e300) * 1e300;
  of_double[5] = erfcx(100.0);
  of_double[6] = erfcx(24.999999) - erfcx(25.000001); // the implementation uses another formula above 25
  of_double[7] = erfcx(-1.0);
  of_double[8] = rhypot(3e-320, 4e-320); // the reciprocal of a subnormal number
  of_float[0] = norm3df(3e38f, 1e38f, -1e38f);
  of_float[1] = norm3df(2.0f, -3.0f, 6.0f);
  of_float[2] = norm4df(1.0f, 1.0f, 1.0f, 1.0f);
  of_float[3] = normf(3, large);
  of_float[4] = rnorm3df(2.0f, 3.0f, 6.0f);
  of_float[5] = rnorm4df(2.0f, 2.0f, 2.0f, 2.0f);
  of_float[6] = rhypotf(3.0f, 4.0f);
  of_float[7] = fdividef(1.0f, 4.0f);
  of_float[8] = cyl_bessel_i0f(-1.0f);
  of_float[9] = cyl_bessel_i1f(-1.0f);
  const size_t count = 7;
  const int64_t limit = 9;
  of_integers[0] = static_cast<long long>(min(count, limit));
  of_integers[1] = max(-1L, 5UL) == ~0UL; // compared as unsigned
  of_integers[2] = static_cast<long long>(max(3ULL, 4LL));
  of_integers[3] = static_cast<long long>(umin(3u, ~0u));
  of_integers[4] = llmax(-3LL, -4LL);
}

void check_functions() {
  Array<double> of_double(9);
  Array<float> of_float(10);
  Array<long long> of_integers(5);
  functions<<<1, 1>>>((double*)of_double, (float*)of_float, (long long*)of_integers);
  const std::vector<double> d = of_double.host();
  const double expected[] = {5, 2, 5, INFINITY, 1.0 / 3, 0.0056416137829894329, 0, 5.0089800807622838, INFINITY};
  for (int i = 0; i < 9; ++i) {
    EXPECT(d[i] == expected[i] || std::fabs(d[i] - expected[i]) < (i == 6 ? 4e-9 : 4e-16 * std::fabs(expected[i])));
  }
  const std::vector<float> f = of_float.host();
  const double lengths[] = {3.3166247903554e38,  7, 2, 3.3166247903554e38, 1.0 / 7, 0.25, 0.2, 0.25, 1.2660658777520084,
                            -0.56515910399248503};
  for (int i = 0; i < 10; ++i) {
    EXPECT(std::fabs(f[i] - lengths[i]) <= 1.2e-7 * std::fabs(lengths[i]));
  }
  EXPECT(of_integers.host() == (std::vector<long long>{7, 1, 4, 3, -3}));
}

// Each thread has four numbers, so that the compiler vectorizes.
struct alignas(16) Four {
  float x[4];
};
__global__ void exponentials(const Four* in, Four* out, float* one_each) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const Four from = in[i];
  Four to;
  for (int k = 0; k < 4; ++k) {
    to.x[k] = expf(from.x[k]);
  }
  out[i] = to;
  one_each[i] = expf(from.x[0]);
}

// Every 1021st float, both infinities and NaN.
void check_exponentials() {
  std::vector<Four> in;
  for (uint64_t bits = 0; bits < 1ull << 32; bits += 4 * 1021) {
    Four four;
    for (unsigned k = 0; k < 4; ++k) {
      const uint32_t own = static_cast<uint32_t>(bits + k * 1021);
      std::memcpy(&four.x[k], &own, sizeof own);
    }
    in.push_back(four);
  }
  in.push_back({{INFINITY, -INFINITY, NAN, 0.0f}});
  in.push_back({{88.722839f, 88.7228470f, -103.972f, -103.973f}}); // around the largest and the smallest result
  in.resize((in.size() + 63) / 64 * 64);
  const size_t count = in.size();
  Array<Four> from(count), to(count);
  Array<float> one_each(count);
  from = in;
  exponentials<<<count / 64, 64>>>((const Four*)(Four*)from, (Four*)to, (float*)one_each);
  const std::vector<Four> got = to.host();
  const std::vector<float> ones = one_each.host();
  const auto close = [](float x, float is) {
    const double should = std::exp(double(x));
    const float nearest = static_cast<float>(should);
    if (std::isnan(should) || std::isinf(nearest) || is == nearest) {
      return std::isnan(should) ? std::isnan(is) : is == nearest;
    }
    const double unit = double(std::nextafter(nearest, INFINITY)) - nearest;
    return std::fabs(is - should) <= 4 * unit; // the bound of glibc's vector functions
  };
  size_t wrong = 0;
  for (size_t i = 0; i < count; ++i) {
    for (int k = 0; k < 4; ++k) {
      wrong += !close(in[i].x[k], got[i].x[k]);
    }
    wrong += !close(in[i].x[0], ones[i]);
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT(!close(1.0f, 2.718279f)); // 6 ULPs away
}

int main() {
  check_functions();
  check_exponentials();
  check_format<__half>(1u << 16, 5, 10, true, [](float v) { return unsigned(__half(v).__x); });
  check_format<__mt_bfloat16>(1u << 16, 8, 7, true, [](float v) { return unsigned(__mt_bfloat16(v).__x); });
  check_format<__mt_fp8_e4m3>(1u << 8, 4, 3, false, [](float v) { return unsigned(__mt_fp8_e4m3(v).__x); });
  check_format<__mt_fp8_e5m2>(1u << 8, 5, 2, true, [](float v) { return unsigned(__mt_fp8_e5m2(v).__x); });
  check_pairs<__half, __half2>();
  check_pairs<__mt_bfloat16, __mt_bfloat162>();
  { // out of range
    EXPECT_EQ(float(__mt_fp8_e4m3(1e9f)), 448.0f);
    EXPECT_EQ(float(__mt_fp8_e5m2(-INFINITY)), -57344.0f);
    EXPECT_EQ(__musa_cvt_float2_to_fp8x2(make_float2(1e9f, -1e9f), __MT_NOSAT, __MT_E5M2), 0xfc7c);
    EXPECT_EQ(__musa_cvt_float4_to_fp8x4(make_float4(1, 2, -1, 1e9f), __MT_SATFINITE, __MT_E4M3), 0x7eb84038u);
    const __mt_fp8x4_e4m3 four(make_float4(1, 2, -1, 0.5f));
    EXPECT_EQ(static_cast<float4>(four).z, -1.0f);
    EXPECT(std::isinf(float(__half(1e9f))));
    EXPECT_EQ(__float2half_rz(1e9f).__x, 0x7bff);
  }
  { // rounding directions
    for (float value : {1.0001f, -1.0001f, 1e-9f, -1e-9f, 3.0f}) {
      const float down = float(__float2half_rd(value)), up = float(__float2half_ru(value));
      EXPECT(down <= value && value <= up);
      EXPECT_EQ(float(__float2half_rz(value)), value > 0 ? down : up);
      EXPECT(
          down == up ? down == value
                     : __half(up).__x - __half(down).__x == 1 || __half(down).__x - __half(up).__x == 1 || down == 0 ||
                  up == 0);
    }
    EXPECT_EQ(__half2int_rn(__half(2.5f)), 2);
    EXPECT_EQ(__half2int_ru(__half(2.5f)), 3);
    EXPECT_EQ(__half2ushort_rz(__half(-3.0f)), 0);
  }
  {
    const muComplex a = make_muComplex(1, 2), b = make_muComplex(3, -4);
    EXPECT_EQ(muCrealf(muCmulf(a, b)), 11.0f);
    EXPECT_EQ(muCimagf(muCmulf(a, b)), 2.0f);
    EXPECT_EQ(muCabsf(b), 5.0f);
    const muDoubleComplex q = muCdiv(make_muDoubleComplex(11, 2), make_muDoubleComplex(3, -4));
    EXPECT(std::fabs(muCreal(q) - 1) < 1e-15 && std::fabs(muCimag(q) - 2) < 1e-15);
    EXPECT(std::isinf(MUSART_INF_F) && MUSART_PI_F == float(M_PI));
  }
  return finish();
}
