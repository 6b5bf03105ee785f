// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Atomic functions. Blocks run on several host threads, so they are host atomics.
#pragma once

#include <musa_bf16.h>
#include <musa_fp16.h>

#include <cstring>
#include <type_traits>

#pragma GCC system_header

namespace musa_simt {

template <size_t bytes>
struct Word;
template <>
struct Word<2> {
  using type = unsigned short;
};
template <>
struct Word<4> {
  using type = unsigned;
};
template <>
struct Word<8> {
  using type = unsigned long long;
};

// Replaces *place by change(*place) and returns the old value.
template <class T, class Change>
inline T update(T* place, Change&& change) {
  using Bits = typename Word<sizeof(T)>::type;
  auto* bits = reinterpret_cast<Bits*>(place);
  Bits before = __atomic_load_n(bits, __ATOMIC_RELAXED);
  for (;;) {
    T value;
    std::memcpy(static_cast<void*>(&value), &before, sizeof value);
    const T changed = change(value);
    Bits after;
    std::memcpy(&after, static_cast<const void*>(&changed), sizeof after);
    if (__atomic_compare_exchange_n(bits, &before, after, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      return value;
    }
  }
}

template <class T>
inline T add(T* place, T value) {
  if constexpr (std::is_integral<T>::value) {
    return __atomic_fetch_add(place, value, __ATOMIC_RELAXED);
  } else {
    return update(place, [value](T now) { return static_cast<T>(now + value); });
  }
}

} // namespace musa_simt

inline int atomicAdd(int* place, int value) { return musa_simt::add(place, value); }
inline unsigned atomicAdd(unsigned* place, unsigned value) { return musa_simt::add(place, value); }
inline unsigned long long atomicAdd(unsigned long long* place, unsigned long long value) {
  return musa_simt::add(place, value);
}
inline float atomicAdd(float* place, float value) { return musa_simt::add(place, value); }
inline double atomicAdd(double* place, double value) { return musa_simt::add(place, value); }

inline __half atomicAdd(__half* place, __half value) { return musa_simt::add(place, value); }
inline __half2 atomicAdd(__half2* place, __half2 value) { return musa_simt::add(place, value); }
inline __mt_bfloat16 atomicAdd(__mt_bfloat16* place, __mt_bfloat16 value) { return musa_simt::add(place, value); }
inline __mt_bfloat162 atomicAdd(__mt_bfloat162* place, __mt_bfloat162 value) { return musa_simt::add(place, value); }

#define MUSA_SIMT_ATOMIC(name, T, expression) \
  inline T name(T* place, T value) { \
    return musa_simt::update(place, [value](T now) { return static_cast<T>(expression); }); \
  }
#define MUSA_SIMT_ATOMICS(T) \
  MUSA_SIMT_ATOMIC(atomicMax, T, now < value ? value : now) \
  MUSA_SIMT_ATOMIC(atomicMin, T, value < now ? value : now) \
  MUSA_SIMT_ATOMIC(atomicAnd, T, now& value) \
  MUSA_SIMT_ATOMIC(atomicOr, T, now | value) \
  MUSA_SIMT_ATOMIC(atomicXor, T, now ^ value) \
  MUSA_SIMT_ATOMIC(atomicExch, T, value) \
  inline T atomicCAS(T* place, T expected, T value) { \
    return musa_simt::update(place, [=](T now) { return now == expected ? value : now; }); \
  }
MUSA_SIMT_ATOMICS(int)
MUSA_SIMT_ATOMICS(unsigned)
MUSA_SIMT_ATOMICS(unsigned long long)
MUSA_SIMT_ATOMIC(atomicExch, float, value)
MUSA_SIMT_ATOMIC(atomicExch, double, value)
MUSA_SIMT_ATOMIC(atomicSub, int, now - value)
MUSA_SIMT_ATOMIC(atomicSub, unsigned, now - value)
MUSA_SIMT_ATOMIC(atomicInc, unsigned, now >= value ? 0 : now + 1)
MUSA_SIMT_ATOMIC(atomicDec, unsigned, now == 0 || now > value ? value : now - 1)
#undef MUSA_SIMT_ATOMICS
#undef MUSA_SIMT_ATOMIC

inline unsigned short atomicCAS(unsigned short* place, unsigned short expected, unsigned short value) {
  return musa_simt::update(place, [=](unsigned short now) -> unsigned short { return now == expected ? value : now; });
}

// Block and system scopes: all have system scope here.
#define MUSA_SIMT_SCOPED(name) \
  template <class T, class Value> \
  inline T name##_block(T* place, Value value) { \
    return name(place, static_cast<T>(value)); \
  } \
  template <class T, class Value> \
  inline T name##_system(T* place, Value value) { \
    return name(place, static_cast<T>(value)); \
  }
MUSA_SIMT_SCOPED(atomicAdd)
MUSA_SIMT_SCOPED(atomicSub)
MUSA_SIMT_SCOPED(atomicMax)
MUSA_SIMT_SCOPED(atomicMin)
MUSA_SIMT_SCOPED(atomicAnd)
MUSA_SIMT_SCOPED(atomicOr)
MUSA_SIMT_SCOPED(atomicXor)
MUSA_SIMT_SCOPED(atomicExch)
MUSA_SIMT_SCOPED(atomicInc)
MUSA_SIMT_SCOPED(atomicDec)
#undef MUSA_SIMT_SCOPED
template <class T, class Expected, class Value>
inline T atomicCAS_block(T* place, Expected expected, Value value) {
  return atomicCAS(place, static_cast<T>(expected), static_cast<T>(value));
}
template <class T, class Expected, class Value>
inline T atomicCAS_system(T* place, Expected expected, Value value) {
  return atomicCAS(place, static_cast<T>(expected), static_cast<T>(value));
}
