// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The device functions that MUSA is known to have: public code calls each of them with the vendor's SDK. A function
// that is missing here is an error in the device pass; add it together with the public code that uses it.
#pragma once

#include <cstddef>

// ---- barriers, fences, time
__device__ void __syncthreads();
__device__ void __syncthreads_lm();
__device__ int __syncthreads_count(int);
__device__ int __syncthreads_and(int);
__device__ int __syncthreads_or(int);
__device__ void __syncwarp(unsigned = 0xffffffffu);
__device__ void __threadfence();
__device__ void __threadfence_block();
__device__ void __threadfence_system();
__device__ int clock();
__device__ long long clock64();
__device__ void __nanosleep(unsigned);

// ---- warps
#define MCC_SHUFFLES(T) \
  __device__ T __shfl_sync(unsigned, T, int, int = 32); \
  __device__ T __shfl_up_sync(unsigned, T, unsigned, int = 32); \
  __device__ T __shfl_down_sync(unsigned, T, unsigned, int = 32); \
  __device__ T __shfl_xor_sync(unsigned, T, int, int = 32);
MCC_SHUFFLES(int)
MCC_SHUFFLES(unsigned)
MCC_SHUFFLES(long)
MCC_SHUFFLES(unsigned long)
MCC_SHUFFLES(long long)
MCC_SHUFFLES(unsigned long long)
MCC_SHUFFLES(float)
MCC_SHUFFLES(double)
#undef MCC_SHUFFLES
__device__ unsigned __ballot_sync(unsigned, int);
__device__ int __any_sync(unsigned, int);
__device__ int __all_sync(unsigned, int);
__device__ unsigned __activemask();
__device__ unsigned __match_any_sync(unsigned, int);
__device__ unsigned __match_any_sync(unsigned, unsigned);
__device__ unsigned __match_any_sync(unsigned, long long);
__device__ unsigned __match_any_sync(unsigned, unsigned long long);

// ---- atomic functions
#define MCC_ATOMICS(T) \
  __device__ T atomicAdd(T*, T); \
  __device__ T atomicMax(T*, T); \
  __device__ T atomicMin(T*, T); \
  __device__ T atomicAnd(T*, T); \
  __device__ T atomicOr(T*, T); \
  __device__ T atomicXor(T*, T); \
  __device__ T atomicExch(T*, T); \
  __device__ T atomicCAS(T*, T, T);
MCC_ATOMICS(int)
MCC_ATOMICS(unsigned)
MCC_ATOMICS(unsigned long long)
#undef MCC_ATOMICS
__device__ float atomicAdd(float*, float);
__device__ double atomicAdd(double*, double);
__device__ float atomicExch(float*, float);
__device__ int atomicSub(int*, int);
__device__ unsigned atomicSub(unsigned*, unsigned);
__device__ unsigned atomicInc(unsigned*, unsigned);
__device__ unsigned atomicDec(unsigned*, unsigned);
__device__ unsigned short atomicCAS(unsigned short*, unsigned short, unsigned short);

// ---- memory
template <class T>
__device__ T __ldg(const T*);
extern "C" __device__ int printf(const char*, ...);

// ---- integers and bits
__device__ int __popc(unsigned);
__device__ int __popcll(unsigned long long);
__device__ int __clz(int);
__device__ int __clzll(long long);
__device__ int __ffs(int);
__device__ int __ffsll(long long);
__device__ unsigned __brev(unsigned);
__device__ unsigned long long __brevll(unsigned long long);
__device__ int __mulhi(int, int);
__device__ unsigned __umulhi(unsigned, unsigned);
__device__ unsigned long long __umul64hi(unsigned long long, unsigned long long);
__device__ int __float_as_int(float);
__device__ unsigned __float_as_uint(float);
__device__ float __int_as_float(int);
__device__ float __uint_as_float(unsigned);
__device__ long long __double_as_longlong(double);
__device__ double __longlong_as_double(long long);
__device__ double __hiloint2double(int, int);
__device__ int __double2hiint(double);
__device__ int __double2loint(double);

// ---- floating point
__device__ float __fdividef(float, float);
__device__ float __expf(float);
__device__ float __exp10f(float);
__device__ float __logf(float);
__device__ float __log2f(float);
__device__ float __log10f(float);
__device__ float __powf(float, float);
__device__ float __sinf(float);
__device__ float __cosf(float);
__device__ float __tanf(float);
__device__ float __saturatef(float);
__device__ float __frcp_rn(float);
__device__ float __fsqrt_rn(float);
__device__ float __fdiv_rn(float, float);
__device__ float __fmaf_rn(float, float, float);
__device__ double __dadd_rn(double, double);
__device__ int __float2int_rd(float);
__device__ int __float2int_rn(float);
__device__ int __float2int_rz(float);
__device__ long long __float2ll_rn(float);
__device__ long long __float2ll_rz(float);
__device__ int __double2int_rn(double);
__device__ long long __double2ll_rn(double);

// clang's <cmath> for device code is implemented with these.
__device__ int __isfinited(double);
__device__ int __isinfd(double);
__device__ int __isnand(double);
__device__ int __signbitd(double);
