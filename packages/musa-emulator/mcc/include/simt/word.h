// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Words as vectors of bytes or halfwords, bit fields, byte dot products, address spaces, thread exit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "simt/abi.h"
#include "simt/sync.h"

#pragma GCC system_header

// ---- one operation per part of a word. `T` is the type of a part: signed or unsigned, 8 or 16 bits.

namespace musa_simt {

template <class T, class Operation>
inline unsigned for_parts(unsigned a, unsigned b, Operation operation) {
  constexpr unsigned bits = 8 * sizeof(T);
  constexpr unsigned mask = (1u << bits) - 1;
  unsigned result = 0;
  for (unsigned shift = 0; shift < 32; shift += bits) {
    const int left = static_cast<T>(a >> shift & mask);
    const int right = static_cast<T>(b >> shift & mask);
    result |= (static_cast<unsigned>(operation(left, right)) & mask) << shift;
  }
  return result;
}
template <class T>
inline int saturated(int value) {
  const int least = std::is_signed<T>::value ? -(1 << (8 * sizeof(T) - 1)) : 0;
  const int most = (1 << (8 * sizeof(T) - std::is_signed<T>::value)) - 1;
  return std::min(std::max(value, least), most);
}
// The sum of absolute differences of all parts.
template <class T>
inline unsigned sum_of_differences(unsigned a, unsigned b) {
  unsigned sum = 0;
  for_parts<T>(a, b, [&](int x, int y) {
    sum += static_cast<unsigned>(std::abs(x - y));
    return 0;
  });
  return sum;
}

} // namespace musa_simt

#define MUSA_SIMT_WORD(name, T, expression) \
  inline unsigned name(unsigned a, unsigned b) { \
    return musa_simt::for_parts<T>(a, b, [](int x, int y) -> int { return (expression); }); \
  }
#define MUSA_SIMT_WORD_OF_ONE(name, T, expression) \
  inline unsigned name(unsigned a) { \
    return musa_simt::for_parts<T>(a, 0, [](int x, int) -> int { return (expression); }); \
  }
#define MUSA_SIMT_WORDS(n, S, U) \
  MUSA_SIMT_WORD(__vadd##n, U, x + y) \
  MUSA_SIMT_WORD(__vsub##n, U, x - y) \
  MUSA_SIMT_WORD(__vaddss##n, S, musa_simt::saturated<S>(x + y)) \
  MUSA_SIMT_WORD(__vaddus##n, U, musa_simt::saturated<U>(x + y)) \
  MUSA_SIMT_WORD(__vsubss##n, S, musa_simt::saturated<S>(x - y)) \
  MUSA_SIMT_WORD(__vsubus##n, U, musa_simt::saturated<U>(x - y)) \
  MUSA_SIMT_WORD(__vabsdiffs##n, S, x < y ? y - x : x - y) \
  MUSA_SIMT_WORD(__vabsdiffu##n, U, x < y ? y - x : x - y) \
  MUSA_SIMT_WORD(__vavgs##n, S, (x + y + (x + y >= 0)) >> 1) \
  MUSA_SIMT_WORD(__vavgu##n, U, (x + y + 1) >> 1) \
  MUSA_SIMT_WORD(__vhaddu##n, U, (x + y) >> 1) \
  MUSA_SIMT_WORD(__vmaxs##n, S, x < y ? y : x) \
  MUSA_SIMT_WORD(__vmaxu##n, U, x < y ? y : x) \
  MUSA_SIMT_WORD(__vmins##n, S, y < x ? y : x) \
  MUSA_SIMT_WORD(__vminu##n, U, y < x ? y : x) \
  MUSA_SIMT_WORD(__vcmpeq##n, U, x == y ? -1 : 0) \
  MUSA_SIMT_WORD(__vcmpne##n, U, x != y ? -1 : 0) \
  MUSA_SIMT_WORD(__vcmpges##n, S, x >= y ? -1 : 0) \
  MUSA_SIMT_WORD(__vcmpgeu##n, U, x >= y ? -1 : 0) \
  MUSA_SIMT_WORD(__vcmpgts##n, S, x > y ? -1 : 0) \
  MUSA_SIMT_WORD(__vcmpgtu##n, U, x > y ? -1 : 0) \
  MUSA_SIMT_WORD(__vcmples##n, S, x <= y ? -1 : 0) \
  MUSA_SIMT_WORD(__vcmpleu##n, U, x <= y ? -1 : 0) \
  MUSA_SIMT_WORD(__vcmplts##n, S, x < y ? -1 : 0) \
  MUSA_SIMT_WORD(__vcmpltu##n, U, x < y ? -1 : 0) \
  MUSA_SIMT_WORD(__vseteq##n, U, x == y) \
  MUSA_SIMT_WORD(__vsetne##n, U, x != y) \
  MUSA_SIMT_WORD(__vsetges##n, S, x >= y) \
  MUSA_SIMT_WORD(__vsetgeu##n, U, x >= y) \
  MUSA_SIMT_WORD(__vsetgts##n, S, x > y) \
  MUSA_SIMT_WORD(__vsetgtu##n, U, x > y) \
  MUSA_SIMT_WORD(__vsetles##n, S, x <= y) \
  MUSA_SIMT_WORD(__vsetleu##n, U, x <= y) \
  MUSA_SIMT_WORD(__vsetlts##n, S, x < y) \
  MUSA_SIMT_WORD(__vsetltu##n, U, x < y) \
  MUSA_SIMT_WORD_OF_ONE(__vabs##n, S, x < 0 ? -x : x) \
  MUSA_SIMT_WORD_OF_ONE(__vabsss##n, S, musa_simt::saturated<S>(x < 0 ? -x : x)) \
  MUSA_SIMT_WORD_OF_ONE(__vneg##n, S, -x) \
  MUSA_SIMT_WORD_OF_ONE(__vnegss##n, S, musa_simt::saturated<S>(-x)) \
  inline unsigned __vsads##n(unsigned a, unsigned b) { return musa_simt::sum_of_differences<S>(a, b); } \
  inline unsigned __vsadu##n(unsigned a, unsigned b) { return musa_simt::sum_of_differences<U>(a, b); }
MUSA_SIMT_WORDS(2, int16_t, uint16_t)
MUSA_SIMT_WORDS(4, int8_t, uint8_t)
#undef MUSA_SIMT_WORDS
#undef MUSA_SIMT_WORD_OF_ONE
#undef MUSA_SIMT_WORD

// ---- dot products of bytes with an accumulator

inline int __dp4a(int a, int b, int sum) {
  unsigned total = static_cast<unsigned>(sum); // wraps around, as on a GPU
  for (int shift = 0; shift < 32; shift += 8) {
    total += static_cast<unsigned>(static_cast<int8_t>(a >> shift) * static_cast<int8_t>(b >> shift));
  }
  return static_cast<int>(total);
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
  for (int shift = 0; shift < 32; shift += 8) {
    sum += (a >> shift & 0xff) * (b >> shift & 0xff);
  }
  return sum;
}
inline int __dp4a(char4 a, char4 b, int sum) { return sum + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned sum) {
  return sum + a.x * 1u * b.x + a.y * 1u * b.y + a.z * 1u * b.z + a.w * 1u * b.w;
}
// Halfwords of `a` times the two lower or upper bytes of `b`.
inline int __dp2a_lo(int a, int b, int sum) {
  return sum + static_cast<int16_t>(a) * static_cast<int8_t>(b) + (a >> 16) * static_cast<int8_t>(b >> 8);
}
inline int __dp2a_hi(int a, int b, int sum) { return __dp2a_lo(a, b >> 16, sum); }
inline unsigned __dp2a_lo(unsigned a, unsigned b, unsigned sum) {
  return sum + (a & 0xffff) * (b & 0xff) + (a >> 16) * (b >> 8 & 0xff);
}
inline unsigned __dp2a_hi(unsigned a, unsigned b, unsigned sum) { return __dp2a_lo(a, b >> 16, sum); }

// ---- bit fields: `length` bits starting at bit `start`

inline unsigned __bfe_u32(unsigned value, unsigned start, unsigned length) {
  start &= 0xff, length &= 0xff;
  const unsigned rest = start < 32 ? value >> start : 0;
  return length < 32 ? rest & ((1u << length) - 1) : rest;
}
inline unsigned __bfi_u32(unsigned into, unsigned field, unsigned start, unsigned length) {
  start &= 0xff, length &= 0xff;
  if (start > 31) {
    return into;
  }
  const unsigned mask = (length < 32 ? (1u << length) - 1 : ~0u) << start;
  return (into & ~mask) | (field << start & mask);
}

// ---- address spaces: only one here. Shared addresses are relative to the block's first one, so that they fit into
// 32 bits.

inline size_t __cvta_generic_to_shared(const void* pointer) {
  return static_cast<size_t>(
      static_cast<const char*>(pointer) - static_cast<const char*>(musa_simt::musa_simt_dynamic_shared()));
}
inline void* __cvta_shared_to_generic(size_t offset) {
  return static_cast<char*>(musa_simt::musa_simt_dynamic_shared()) + offset;
}
inline size_t __cvta_generic_to_global(const void* pointer) { return reinterpret_cast<size_t>(pointer); }
inline void* __cvta_global_to_generic(size_t address) { return reinterpret_cast<void*>(address); }
inline void* __musa_ptr_gen_to_global(const void* pointer) { return const_cast<void*>(pointer); }

// ---- exit of a thread, and of the kernel

// Ends the thread. Destructors of the functions on its stack are not called.
[[noreturn]] inline void __musa_exit() { musa_simt::musa_simt_exit(); }
[[noreturn]] inline void __trap(musa_simt::Here here = {}) {
  musa_simt::musa_simt_fail("__trap", here.file, here.line, /*assertion=*/0);
}
inline void __brkpt(int = 0) {}

// The implementation of assert() and torch's CUDA_KERNEL_ASSERT: ends the kernel, not the process. The headers'
// declarations of __assert_fail redeclare it.
extern "C" [[noreturn]] inline void musa_simt_assert_fail(
    const char* expression, const char* file, unsigned line, const char* function) noexcept {
  (void)function;
  musa_simt::musa_simt_fail(expression, file, line, /*assertion=*/1);
}
#define __assert_fail musa_simt_assert_fail
