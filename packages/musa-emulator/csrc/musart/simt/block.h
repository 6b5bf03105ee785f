// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// One block: its threads, their waits, and its shared memory.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/config.h"
#include "simt/abi.h"
#include "simt/fiber.h"

namespace musa_emulator::simt {

using musa_simt::Body;
using musa_simt::Count;
using musa_simt::Exchange;
using musa_simt::Site;

inline constexpr unsigned kMaxThreads = 1024;

// Parameters that all blocks of a launch share.
struct LaunchShape {
  uint3 grid, block;
  size_t dynamic_shared = 0;
  size_t shared_limit = 0; // per block, static and dynamic together
  unsigned warp = 32;
  bool poison = false; // new shared memory is filled with a pattern
  ThreadOrder order = ThreadOrder::Forward;
  uint64_t seed = 0;
};

// A set of a block's threads.
class ThreadSet {
 public:
  void clear() { words_.fill(0); }
  void add(unsigned thread) { words_[thread / 64] |= uint64_t{1} << (thread % 64); }
  void remove(unsigned thread) { words_[thread / 64] &= ~(uint64_t{1} << (thread % 64)); }
  // Adds the threads first + i for each bit i of `bits`.
  void add_all(unsigned first, uint64_t bits) { words_[first / 64] |= bits << (first % 64); }
  bool has(unsigned thread) const { return (words_[thread / 64] >> (thread % 64) & 1) != 0; }
  void take_all(ThreadSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) {
      words_[i] |= other.words_[i];
      other.words_[i] = 0;
    }
  }
  uint64_t word(size_t i) const { return words_[i]; }
  static constexpr size_t kWords = kMaxThreads / 64;

 private:
  std::array<uint64_t, kWords> words_{};
};

// A collective operation of the lanes of a warp.
struct Meeting {
  Exchange kind = Exchange::Sync;
  size_t bytes = 0;
  unsigned width = 0;
  void (*merge)(void* into, const void* value) = nullptr; // for reductions
};

class Block {
 public:
  enum class Outcome { Done, AtGridBarrier, Failed };

  Block();
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  // Starts the block with this index, and runs it until it ends or all its threads wait for other blocks.
  Outcome run(const LaunchShape& shape, uint3 index, Body body, void** arguments);
  // Continues after the other blocks have reached the grid barrier.
  Outcome resume();
  // The reason for Outcome::Failed.
  const std::string& problem() const { return problem_; }
  bool asserted() const { return asserted_; }

  // ---- called from the kernel's threads

  bool next_thread();
  [[noreturn]] void exit_thread();
  int barrier(const Site* site, Count count, int predicate);
  void grid_barrier(const Site* site);
  // `own_32`: the mask selects lanes in the caller's group of 32 only, instead of in each group of 32 of a wider
  // warp.
  void meet(
      const Site* site, const Meeting& meeting, unsigned mask, const void* give, void* get, int operand,
      bool own_32 = false);
  // As meet(), without a mask: joins the lanes that reach this site. They continue when no other thread of the block
  // can run.
  void converge(const Site* site, const Meeting& meeting, const void* give, void* get, int operand);
  unsigned lane() const { return current() % shape_->warp; }
  uint3* index() { return &threads_[running_].index; }
  void* shared(const Site* site, const void* key, size_t bytes, size_t alignment);
  void* dynamic_shared();
  [[noreturn]] void fail(std::string problem, bool asserted);

 private:
  static constexpr unsigned kNobody = ~0u;
  enum class WaitsFor : uint8_t { Nothing, Block, Warp, Grid };
  using Lanes = unsigned __int128; // of one warp

  struct Thread {
    uint3 index{}; // while the thread runs, threadIdx is used instead, except under the sanitizer
    unsigned fiber = 0;
    WaitsFor waits_for = WaitsFor::Nothing;
    const Site* site = nullptr;
    // Input and output of a collective operation.
    const void* give = nullptr;
    void* get = nullptr;
    int operand = 0;
  };
  struct Group { // the lanes that have arrived at a collective operation
    unsigned warp;
    Lanes named;
    Meeting meeting;
    Lanes arrived;
    // Set if the operation has no mask. The caller's Site stays alive during its call.
    const Site* site = nullptr;
  };
  struct SharedVariable {
    const void* key;
    Site site;
    char* data;
    size_t bytes;
  };

  void reset(const LaunchShape& shape, uint3 index, Body body, void** arguments);
  Outcome drive();
  unsigned current() const;
  void start(unsigned thread);
  void break_order();
  unsigned take_unstarted();
  unsigned next_ready() const;
  void wait(WaitsFor what, const Site* site);
  inline void go_on(Context& from);
  void begin_fiber();
  static void enter(void* block);
  void release_barrier();
  void thread_ended();
  Lanes named_by(unsigned mask) const;
  void arrive(Group& group, const Site* site, const void* give, void* get, int operand);
  bool complete(Group& group);
  void finish(Group& group);
  bool release_converged();
  void move(const Group& group);
  template <size_t bytes>
  void shuffle(const Group& group);
  void mark_ended(unsigned thread);
  std::string describe_deadlock() const;
  std::string overrun() const;
  void lay_red_zone(char* place);

  LaunchShape const* shape_ = nullptr;
  Body body_ = nullptr;
  void** arguments_ = nullptr;
  uint3 index_{};
  unsigned count_ = 0; // number of threads
  unsigned warp_shift_ = 0; // log2 of the warp size
  unsigned started_ = 0;
  unsigned live_ = 0; // threads that have not ended, started or not
  unsigned at_barrier_ = 0;
  unsigned at_grid_barrier_ = 0;
  int tally_ = 0; // result of the predicates at a barrier
  Count tally_kind_ = Count::None;
  int tally_result_ = 0;
  unsigned running_ = 0; // used if in_order is false
  std::vector<unsigned> order_; // the start order of threads, if not ascending
  mutable uint64_t random_ = 0;
  std::array<Thread, kMaxThreads> threads_;
  ThreadSet ready_, at_barrier_set_, at_grid_barrier_set_, ended_;
  std::vector<Group> groups_;
  std::array<Lanes, kMaxThreads / 32> live_lanes_{}; // by warp

  Stacks stacks_;
  std::vector<Context> fibers_; // by stack number
  std::vector<unsigned> free_fibers_;
  unsigned running_fiber_ = 0;
  Context outside_;

  char* shared_ = nullptr;
  size_t shared_capacity_ = 0;
  size_t shared_used_ = 0; // including red zones
  size_t shared_asked_ = 0;
  std::vector<SharedVariable> variables_;
  std::string problem_;
  bool failed_ = false;
  bool asserted_ = false;
};

// The block that this OS thread runs.
extern __thread Block* running_block __attribute__((tls_model("initial-exec")));

} // namespace musa_emulator::simt
