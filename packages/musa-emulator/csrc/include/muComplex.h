// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Complex numbers as structs: x is the real part, y the imaginary part. Valid C.
#ifndef MUSA_COMPLEX_H
#define MUSA_COMPLEX_H

#include <math.h>

#include "host_defines.h"
#include "vector_functions.h"

typedef float2 muFloatComplex;
typedef double2 muDoubleComplex;
typedef muFloatComplex muComplex;

// For both precisions: `f` is the suffix of the float functions.
#define MUSA_DEFINE_COMPLEX(Complex, Real, f, hypot_, make) \
  static __inline__ __host__ __device__ Real muCreal##f(Complex z) { return z.x; } \
  static __inline__ __host__ __device__ Real muCimag##f(Complex z) { return z.y; } \
  static __inline__ __host__ __device__ Complex make(Real real, Real imaginary) { \
    Complex z; \
    z.x = real; \
    z.y = imaginary; \
    return z; \
  } \
  static __inline__ __host__ __device__ Complex muConj##f(Complex z) { return make(z.x, -z.y); } \
  static __inline__ __host__ __device__ Complex muCadd##f(Complex a, Complex b) { return make(a.x + b.x, a.y + b.y); } \
  static __inline__ __host__ __device__ Complex muCsub##f(Complex a, Complex b) { return make(a.x - b.x, a.y - b.y); } \
  static __inline__ __host__ __device__ Complex muCmul##f(Complex a, Complex b) { \
    return make(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); \
  } \
  /* Scaled by the size of the divisor, so that its square does not overflow. */ \
  static __inline__ __host__ __device__ Complex muCdiv##f(Complex a, Complex b) { \
    const Real scale = (b.x < 0 ? -b.x : b.x) + (b.y < 0 ? -b.y : b.y); \
    const Real ax = a.x / scale, ay = a.y / scale, bx = b.x / scale, by = b.y / scale; \
    const Real square = bx * bx + by * by; \
    return make((ax * bx + ay * by) / square, (ay * bx - ax * by) / square); \
  } \
  static __inline__ __host__ __device__ Real muCabs##f(Complex z) { return hypot_(z.x, z.y); } \
  static __inline__ __host__ __device__ Complex muCfma##f(Complex a, Complex b, Complex c) { \
    return muCadd##f(muCmul##f(a, b), c); \
  }

MUSA_DEFINE_COMPLEX(muFloatComplex, float, f, hypotf, make_muFloatComplex)
MUSA_DEFINE_COMPLEX(muDoubleComplex, double, , hypot, make_muDoubleComplex)
#undef MUSA_DEFINE_COMPLEX

static __inline__ __host__ __device__ muComplex make_muComplex(float real, float imaginary) {
  return make_muFloatComplex(real, imaginary);
}
static __inline__ __host__ __device__ muDoubleComplex muComplexFloatToDouble(muFloatComplex z) {
  return make_muDoubleComplex((double)z.x, (double)z.y);
}
static __inline__ __host__ __device__ muFloatComplex muComplexDoubleToFloat(muDoubleComplex z) {
  return make_muFloatComplex((float)z.x, (float)z.y);
}

#endif
