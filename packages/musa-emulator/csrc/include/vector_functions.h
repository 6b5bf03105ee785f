// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// make_<vector>() for every built-in vector type.
#ifndef MUSA_VECTOR_FUNCTIONS_H
#define MUSA_VECTOR_FUNCTIONS_H

#include "vector_types.h"

#define MUSA_DEFINE_MAKE_VECTOR(name, element) \
  static __inline__ __host__ __device__ name##1 make_##name##1(element x) { \
    name##1 v; \
    v.x = x; \
    return v; \
  } \
  static __inline__ __host__ __device__ name##2 make_##name##2(element x, element y) { \
    name##2 v; \
    v.x = x; \
    v.y = y; \
    return v; \
  } \
  static __inline__ __host__ __device__ name##3 make_##name##3(element x, element y, element z) { \
    name##3 v; \
    v.x = x; \
    v.y = y; \
    v.z = z; \
    return v; \
  } \
  static __inline__ __host__ __device__ name##4 make_##name##4(element x, element y, element z, element w) { \
    name##4 v; \
    v.x = x; \
    v.y = y; \
    v.z = z; \
    v.w = w; \
    return v; \
  }

MUSA_DEFINE_MAKE_VECTOR(char, signed char)
MUSA_DEFINE_MAKE_VECTOR(uchar, unsigned char)
MUSA_DEFINE_MAKE_VECTOR(short, short)
MUSA_DEFINE_MAKE_VECTOR(ushort, unsigned short)
MUSA_DEFINE_MAKE_VECTOR(int, int)
MUSA_DEFINE_MAKE_VECTOR(uint, unsigned int)
MUSA_DEFINE_MAKE_VECTOR(long, long int)
MUSA_DEFINE_MAKE_VECTOR(ulong, unsigned long int)
MUSA_DEFINE_MAKE_VECTOR(longlong, long long int)
MUSA_DEFINE_MAKE_VECTOR(ulonglong, unsigned long long int)
MUSA_DEFINE_MAKE_VECTOR(float, float)
MUSA_DEFINE_MAKE_VECTOR(double, double)

#undef MUSA_DEFINE_MAKE_VECTOR

#endif
