// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Groups of threads that synchronize and exchange values: the block, tiles of a warp, the active lanes, the grid.
#ifndef MUSA_COOPERATIVE_GROUPS_H
#define MUSA_COOPERATIVE_GROUPS_H

#ifndef __MUSACC__
#error "cooperative_groups.h declares device functions. Fix: compile this file with mcc"
#endif

#include <type_traits>

#include "simt/sync.h"

namespace cooperative_groups {

namespace details {

inline unsigned rank_in_block() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
inline unsigned block_size() { return blockDim.x * blockDim.y * blockDim.z; }

// Lanes of one warp, as a mask of the 32 lanes around the calling thread.
class Lanes {
 public:
  explicit Lanes(unsigned mask) : mask_(mask) {}
  unsigned mask() const { return mask_; }
  unsigned size() const { return static_cast<unsigned>(__builtin_popcount(mask_)); }
  unsigned rank() const { return static_cast<unsigned>(__builtin_popcount(mask_ & __get_lanemask_lt())); }

  void sync(musa_simt::Here here) const {
    const musa_simt::Site site{here.file, here.line, "sync"};
    musa_simt::musa_simt_exchange_within(&site, musa_simt::Exchange::Sync, mask_, nullptr, nullptr, 0, 0, 0);
  }
  // Returns the value of the lane with this rank; the caller's own value if the rank is out of range.
  template <class T>
  T from(const char* what, T value, unsigned rank, musa_simt::Here here) const {
    static_assert(std::is_trivially_copyable<T>::value, "lanes exchange only trivially copyable values");
    const musa_simt::Site site{here.file, here.line, what};
    const unsigned lane = rank < size() ? lane_of(rank) : musa_simt::musa_simt_lane() % 32;
    T result;
    musa_simt::musa_simt_exchange_within(
        &site, musa_simt::Exchange::Index, mask_, &value, &result, sizeof(T), static_cast<int>(lane), 32);
    return result;
  }
  // Bit i of the result is the vote of the lane with rank i.
  template <class T>
  unsigned vote(const char* what, musa_simt::Exchange kind, T value, musa_simt::Here here) const {
    const musa_simt::Site site{here.file, here.line, what};
    unsigned result;
    musa_simt::musa_simt_exchange_within(&site, kind, mask_, &value, &result, sizeof(T), 0, 32);
    return kind == musa_simt::Exchange::Any || kind == musa_simt::Exchange::All ? result : by_rank(result);
  }
  // Returns the lanes of the group that passed the same value as the caller.
  template <class T>
  Lanes same(const char* what, T value, musa_simt::Here here) const {
    const musa_simt::Site site{here.file, here.line, what};
    unsigned result;
    musa_simt::musa_simt_exchange_within(
        &site, musa_simt::Exchange::MatchAny, mask_, &value, &result, sizeof(T), 0, 32);
    return Lanes(result);
  }

 private:
  unsigned lane_of(unsigned rank) const {
    unsigned rest = mask_;
    while (rank-- > 0) {
      rest &= rest - 1;
    }
    return static_cast<unsigned>(__builtin_ctz(rest));
  }
  unsigned by_rank(unsigned lanes) const {
    unsigned result = 0;
    unsigned rank = 0;
    for (unsigned rest = mask_; rest != 0; rest &= rest - 1, ++rank) {
      result |= (lanes >> __builtin_ctz(rest) & 1u) << rank;
    }
    return result;
  }

  unsigned mask_;
};

} // namespace details

class thread_block {
 public:
  static void sync(musa_simt::Here here = {}) { __syncthreads(here); }
  static unsigned thread_rank() { return details::rank_in_block(); }
  static unsigned size() { return details::block_size(); }
  static unsigned num_threads() { return details::block_size(); }
  static dim3 group_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
  static dim3 thread_index() { return {threadIdx.x, threadIdx.y, threadIdx.z}; }
  static dim3 group_dim() { return {blockDim.x, blockDim.y, blockDim.z}; }
  static dim3 dim_threads() { return group_dim(); }
};
inline thread_block this_thread_block() { return {}; }

// All blocks of a kernel launched with musaLaunchCooperativeKernel.
class grid_group {
 public:
  static bool is_valid() { return true; }
  static void sync(musa_simt::Here here = {}) {
    const musa_simt::Site site{here.file, here.line, "grid.sync"};
    musa_simt::musa_simt_grid_barrier(&site);
  }
  static unsigned long long block_rank() {
    return blockIdx.x +
        static_cast<unsigned long long>(gridDim.x) *
        (blockIdx.y + static_cast<unsigned long long>(gridDim.y) * blockIdx.z);
  }
  static unsigned long long num_blocks() { return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z; }
  static unsigned long long thread_rank() { return block_rank() * details::block_size() + details::rank_in_block(); }
  static unsigned long long num_threads() { return num_blocks() * details::block_size(); }
  static unsigned long long size() { return num_threads(); }
  static dim3 group_dim() { return {gridDim.x, gridDim.y, gridDim.z}; }
  static dim3 dim_blocks() { return group_dim(); }
  static dim3 block_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
};
inline grid_group this_grid() { return {}; }

// Some lanes of a warp: the common base of tiles and active lanes.
class coalesced_group {
 public:
  explicit coalesced_group(unsigned mask) : lanes_(mask) {}
  // Returns the threads of this group that passed the same value as the caller.
  template <class T>
  coalesced_group partition(const char* what, T value, musa_simt::Here here) const {
    return coalesced_group(lanes_.same(what, value, here).mask());
  }
  unsigned size() const { return lanes_.size(); }
  unsigned num_threads() const { return lanes_.size(); }
  unsigned thread_rank() const { return lanes_.rank(); }
  void sync(musa_simt::Here here = {}) const { lanes_.sync(here); }
  template <class T>
  T shfl(T value, unsigned rank, musa_simt::Here here = {}) const {
    return lanes_.from("shfl", value, rank % size(), here);
  }
  template <class T>
  T shfl_up(T value, unsigned delta, musa_simt::Here here = {}) const {
    return lanes_.from("shfl_up", value, thread_rank() - delta, here); // below 0 it wraps out of range
  }
  template <class T>
  T shfl_down(T value, unsigned delta, musa_simt::Here here = {}) const {
    return lanes_.from("shfl_down", value, thread_rank() + delta, here);
  }
  int any(int predicate, musa_simt::Here here = {}) const {
    return static_cast<int>(lanes_.vote("any", musa_simt::Exchange::Any, predicate, here));
  }
  int all(int predicate, musa_simt::Here here = {}) const {
    return static_cast<int>(lanes_.vote("all", musa_simt::Exchange::All, predicate, here));
  }
  unsigned ballot(int predicate, musa_simt::Here here = {}) const {
    return lanes_.vote("ballot", musa_simt::Exchange::Ballot, predicate, here);
  }
  template <class T>
  unsigned match_any(T value, musa_simt::Here here = {}) const {
    return lanes_.vote("match_any", musa_simt::Exchange::MatchAny, value, here);
  }
  template <class T>
  unsigned match_all(T value, int& all, musa_simt::Here here = {}) const {
    const unsigned result = lanes_.vote("match_all", musa_simt::Exchange::MatchAll, value, here);
    all = result != 0;
    return result;
  }

 protected:
  details::Lanes lanes_;
};
inline coalesced_group coalesced_threads(musa_simt::Here here = {}) { return coalesced_group(__activemask(here)); }

// `count` consecutive threads of the block, a power of two up to 32. Without a parent: any tile of that size.
template <unsigned count, class Parent = void>
class thread_block_tile : public thread_block_tile<count, void> {};

template <unsigned count>
class thread_block_tile<count, void> : public coalesced_group {
  static_assert(count > 0 && count <= 32 && (count & (count - 1)) == 0, "the tile size must be 1, 2, 4, 8, 16 or 32");

 public:
  thread_block_tile()
      : coalesced_group(
            (count == 32 ? ~0u : (1u << count % 32) - 1) << (details::rank_in_block() % 32 / count * count)) {}
  static constexpr unsigned size() { return count; }
  static constexpr unsigned num_threads() { return count; }
  static unsigned thread_rank() { return details::rank_in_block() % count; }
  static unsigned meta_group_rank() { return details::rank_in_block() / count; }
  static unsigned meta_group_size() { return (details::block_size() + count - 1) / count; }
  template <class T>
  T shfl(T value, int rank, musa_simt::Here here = {}) const {
    return lanes_.from("shfl", value, static_cast<unsigned>(rank) % count, here);
  }
  template <class T>
  T shfl_xor(T value, unsigned lanes, musa_simt::Here here = {}) const {
    return lanes_.from("shfl_xor", value, thread_rank() ^ lanes, here);
  }
};

template <unsigned count, class Parent>
inline thread_block_tile<count, Parent> tiled_partition(const Parent&) {
  return {};
}

// Return the threads of a group that passed the same predicate or label as the caller.
inline coalesced_group binary_partition(const coalesced_group& group, bool predicate, musa_simt::Here here = {}) {
  return group.partition("binary_partition", static_cast<int>(predicate), here);
}
template <class Label>
inline coalesced_group labeled_partition(const coalesced_group& group, Label label, musa_simt::Here here = {}) {
  return group.partition("labeled_partition", label, here);
}

// A group whose kind is not known at compile time.
class thread_group {
 public:
  thread_group(thread_block) : tile_(0) {}
  thread_group(unsigned tile) : tile_(tile) {}
  template <unsigned count, class Parent>
  thread_group(thread_block_tile<count, Parent>) : tile_(count) {}
  unsigned size() const { return tile_ == 0 ? details::block_size() : tile_; }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const { return tile_ == 0 ? details::rank_in_block() : details::rank_in_block() % tile_; }
  void sync(musa_simt::Here here = {}) const {
    if (tile_ == 0) {
      __syncthreads(here);
    } else {
      details::Lanes((tile_ == 32 ? ~0u : (1u << tile_) - 1) << (details::rank_in_block() % 32 / tile_ * tile_))
          .sync(here);
    }
  }

 private:
  unsigned tile_; // number of consecutive threads; 0: the whole block
};
inline thread_group tiled_partition(const thread_group&, unsigned count) { return thread_group(count); }

template <class Group>
inline void sync(const Group& group, musa_simt::Here here = {}) {
  group.sync(here);
}
template <class Group>
inline auto thread_rank(const Group& group) {
  return group.thread_rank();
}
template <class Group>
inline auto group_size(const Group& group) {
  return group.size();
}

// ---- reductions, also declared by cooperative_groups/reduce.h

template <class T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T>
struct bit_and {
  T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct bit_or {
  T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct bit_xor {
  T operator()(T a, T b) const { return a ^ b; }
};

// Reduces in rank order. Every thread gets the same result.
template <class Group, class T, class Operation>
inline T reduce(const Group& group, T value, Operation operation, musa_simt::Here here = {}) {
  T result = group.shfl(value, 0, here);
  for (unsigned rank = 1; rank < group.size(); ++rank) {
    result = operation(result, group.shfl(value, rank, here));
  }
  return result;
}

} // namespace cooperative_groups

#endif
