// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Built-in vector types. Alignment follows the device ABI: vectors of two or four elements are loaded in one access.
#ifndef MUSA_VECTOR_TYPES_H
#define MUSA_VECTOR_TYPES_H
#define __VECTOR_TYPES_H__ // checked by programs

#include "host_defines.h"

#define MUSA_DEFINE_VECTOR(name, element, align2, align4) \
  struct name##1 { element x; }; \
  struct __align__(align2) name##2 { element x, y; }; \
  struct name##3 { element x, y, z; }; \
  struct __align__(align4) name##4 { element x, y, z, w; }; \
  typedef struct name##1 name##1; \
  typedef struct name##2 name##2; \
  typedef struct name##3 name##3; \
  typedef struct name##4 name##4;

MUSA_DEFINE_VECTOR(char, signed char, 2, 4)
MUSA_DEFINE_VECTOR(uchar, unsigned char, 2, 4)
MUSA_DEFINE_VECTOR(short, short, 4, 8)
MUSA_DEFINE_VECTOR(ushort, unsigned short, 4, 8)
MUSA_DEFINE_VECTOR(int, int, 8, 16)
MUSA_DEFINE_VECTOR(uint, unsigned int, 8, 16)
MUSA_DEFINE_VECTOR(long, long int, 16, 16)
MUSA_DEFINE_VECTOR(ulong, unsigned long int, 16, 16)
MUSA_DEFINE_VECTOR(longlong, long long int, 16, 16)
MUSA_DEFINE_VECTOR(ulonglong, unsigned long long int, 16, 16)
MUSA_DEFINE_VECTOR(float, float, 8, 16)
MUSA_DEFINE_VECTOR(double, double, 16, 16)

#undef MUSA_DEFINE_VECTOR

struct dim3 {
  unsigned int x, y, z;
#ifdef __cplusplus
  __host__ __device__ constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1)
      : x(vx), y(vy), z(vz) {}
  __host__ __device__ constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  __host__ __device__ constexpr operator uint3() const { return uint3{x, y, z}; }
#endif
};
typedef struct dim3 dim3;

#endif
