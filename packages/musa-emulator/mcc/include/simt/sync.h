// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Barriers, shuffles and votes.
#pragma once

#include <type_traits>

#include "simt/abi.h"

#pragma GCC system_header

namespace musa_simt {

// The source location of a call, as a default argument.
struct Here {
  const char* file = __builtin_FILE();
  unsigned line = __builtin_LINE();
};

template <class T>
inline T exchange(const char* what, Here here, Exchange kind, unsigned mask, T value, int operand, int width) {
  static_assert(std::is_trivially_copyable<T>::value, "lanes exchange only trivially copyable values");
  const Site site{here.file, here.line, what};
  T result;
  musa_simt_exchange(&site, kind, mask, &value, &result, sizeof(T), operand, width);
  return result;
}

// Without a mask: among the active lanes.
template <class T>
inline T converge(const char* what, Here here, Exchange kind, T value, int operand, int width) {
  static_assert(std::is_trivially_copyable<T>::value, "lanes exchange only trivially copyable values");
  const Site site{here.file, here.line, what};
  T result;
  musa_simt_converge(&site, kind, &value, &result, sizeof(T), operand, width);
  return result;
}

inline unsigned vote(const char* what, Here here, Exchange kind, unsigned mask, int predicate) {
  const Site site{here.file, here.line, what};
  unsigned result;
  musa_simt_exchange(&site, kind, mask, &predicate, &result, sizeof predicate, 0, warpSize);
  return result;
}

} // namespace musa_simt

inline void __syncthreads(musa_simt::Here here = {}) {
  const musa_simt::Site site{here.file, here.line, "__syncthreads"};
  musa_simt::musa_simt_barrier(&site, musa_simt::Count::None, 0);
}
inline void __syncthreads_lm(musa_simt::Here here = {}) {
  const musa_simt::Site site{here.file, here.line, "__syncthreads_lm"};
  musa_simt::musa_simt_barrier(&site, musa_simt::Count::None, 0);
}
inline int __syncthreads_count(int predicate, musa_simt::Here here = {}) {
  const musa_simt::Site site{here.file, here.line, "__syncthreads_count"};
  return musa_simt::musa_simt_barrier(&site, musa_simt::Count::Sum, predicate);
}
inline int __syncthreads_and(int predicate, musa_simt::Here here = {}) {
  const musa_simt::Site site{here.file, here.line, "__syncthreads_and"};
  return musa_simt::musa_simt_barrier(&site, musa_simt::Count::And, predicate);
}
inline int __syncthreads_or(int predicate, musa_simt::Here here = {}) {
  const musa_simt::Site site{here.file, here.line, "__syncthreads_or"};
  return musa_simt::musa_simt_barrier(&site, musa_simt::Count::Or, predicate);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, musa_simt::Here here = {}) {
  const musa_simt::Site site{here.file, here.line, "__syncwarp"};
  musa_simt::musa_simt_exchange(&site, musa_simt::Exchange::Sync, mask, nullptr, nullptr, 0, 0, 0);
}

// The active lanes; in a warp of more than 32, those in the caller's group of 32.
inline unsigned __activemask(musa_simt::Here here = {}) {
  return static_cast<unsigned>(musa_simt::converge("__activemask", here, musa_simt::Exchange::Ballot, 1, 0, warpSize));
}

template <class T>
inline T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize, musa_simt::Here here = {}) {
  return musa_simt::exchange("__shfl_sync", here, musa_simt::Exchange::Index, mask, value, lane, width);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize, musa_simt::Here here = {}) {
  return musa_simt::exchange(
      "__shfl_up_sync", here, musa_simt::Exchange::Up, mask, value, static_cast<int>(delta), width);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize, musa_simt::Here here = {}) {
  return musa_simt::exchange(
      "__shfl_down_sync", here, musa_simt::Exchange::Down, mask, value, static_cast<int>(delta), width);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = warpSize, musa_simt::Here here = {}) {
  return musa_simt::exchange("__shfl_xor_sync", here, musa_simt::Exchange::Xor, mask, value, lanes, width);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, musa_simt::Here here = {}) {
  return musa_simt::vote("__ballot_sync", here, musa_simt::Exchange::Ballot, mask, predicate);
}
inline int __any_sync(unsigned mask, int predicate, musa_simt::Here here = {}) {
  return static_cast<int>(musa_simt::vote("__any_sync", here, musa_simt::Exchange::Any, mask, predicate));
}
inline int __all_sync(unsigned mask, int predicate, musa_simt::Here here = {}) {
  return static_cast<int>(musa_simt::vote("__all_sync", here, musa_simt::Exchange::All, mask, predicate));
}
template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, musa_simt::Here here = {}) {
  const musa_simt::Site site{here.file, here.line, "__match_any_sync"};
  unsigned result;
  musa_simt::musa_simt_exchange(&site, musa_simt::Exchange::MatchAny, mask, &value, &result, sizeof value, 0, warpSize);
  return result;
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* all, musa_simt::Here here = {}) {
  const musa_simt::Site site{here.file, here.line, "__match_all_sync"};
  unsigned result;
  musa_simt::musa_simt_exchange(&site, musa_simt::Exchange::MatchAll, mask, &value, &result, sizeof value, 0, warpSize);
  *all = result != 0;
  return result;
}

// Shuffles and votes without a mask, from early GPU generations.
template <class T>
inline T __shfl(T value, int lane, int width = warpSize, musa_simt::Here here = {}) {
  return musa_simt::converge("__shfl", here, musa_simt::Exchange::Index, value, lane, width);
}
template <class T>
inline T __shfl_up(T value, unsigned delta, int width = warpSize, musa_simt::Here here = {}) {
  return musa_simt::converge("__shfl_up", here, musa_simt::Exchange::Up, value, static_cast<int>(delta), width);
}
template <class T>
inline T __shfl_down(T value, unsigned delta, int width = warpSize, musa_simt::Here here = {}) {
  return musa_simt::converge("__shfl_down", here, musa_simt::Exchange::Down, value, static_cast<int>(delta), width);
}
template <class T>
inline T __shfl_xor(T value, int lanes, int width = warpSize, musa_simt::Here here = {}) {
  return musa_simt::converge("__shfl_xor", here, musa_simt::Exchange::Xor, value, lanes, width);
}
inline unsigned __ballot(int predicate, musa_simt::Here here = {}) {
  return static_cast<unsigned>(
      musa_simt::converge("__ballot", here, musa_simt::Exchange::Ballot, predicate, 0, warpSize));
}
inline int __any(int predicate, musa_simt::Here here = {}) {
  return musa_simt::converge("__any", here, musa_simt::Exchange::Any, predicate, 0, warpSize);
}
inline int __all(int predicate, musa_simt::Here here = {}) {
  return musa_simt::converge("__all", here, musa_simt::Exchange::All, predicate, 0, warpSize);
}

// The calling thread's lane, and masks of the lanes before, up to and after it in its group of 32.
inline unsigned __get_laneid() { return musa_simt::musa_simt_lane(); }
inline unsigned __laneid() { return musa_simt::musa_simt_lane(); }
inline unsigned __get_lanemask_eq() { return 1u << (musa_simt::musa_simt_lane() % 32); }
inline unsigned __get_lanemask_lt() { return __get_lanemask_eq() - 1; }
inline unsigned __get_lanemask_le() { return __get_lanemask_lt() | __get_lanemask_eq(); }
inline unsigned __get_lanemask_gt() { return ~__get_lanemask_le(); }
inline unsigned __get_lanemask_ge() { return ~__get_lanemask_lt(); }

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
