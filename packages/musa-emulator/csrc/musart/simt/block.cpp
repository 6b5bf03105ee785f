// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "simt/block.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

extern "C" {
__attribute__((weak)) void __tsan_acquire(void* address);
__attribute__((weak)) void __tsan_release(void* address);
__attribute__((weak)) void AnnotateIgnoreWritesBegin(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreWritesEnd(const char* file, int line);
__attribute__((weak)) void __asan_poison_memory_region(const volatile void* address, size_t bytes);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void* address, size_t bytes);
}

__thread uint3 threadIdx;
__thread uint3 blockIdx;
__thread uint3 blockDim;
__thread uint3 gridDim;
__thread int warpSize;
namespace musa_simt {
__thread bool in_order;
}

namespace musa_emulator::simt {
namespace {

using musa_simt::in_order;

constexpr size_t kRedZone = 64;
constexpr unsigned char kRedZoneByte = 0xFB;
constexpr unsigned char kFreshByte = 0xCD;

void acquire(void* address) {
  if (&__tsan_acquire != nullptr) {
    __tsan_acquire(address);
  }
}

void release(void* address) {
  if (&__tsan_release != nullptr) {
    __tsan_release(address);
  }
}

// Hides the write from the thread sanitizer: it is not made by the running GPU thread.
void fill(void* place, unsigned char byte, size_t bytes) {
  if (&AnnotateIgnoreWritesBegin != nullptr) {
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  std::memset(place, byte, bytes);
  if (&AnnotateIgnoreWritesEnd != nullptr) {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  }
}

// Copies word by word. The words were just stored separately, and a wider load would stall until the stores reach the
// cache.
inline void copy(uint3& to, const uint3& from) {
  const volatile uint3& words = from;
  to.x = words.x;
  to.y = words.y;
  to.z = words.z;
}

uint64_t step(uint64_t& state) { // xorshift
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

std::string where(const Site* site) {
  return site == nullptr ? "an unknown location"
                         : std::string(site->what) + " (" + site->file + ":" + std::to_string(site->line) + ")";
}

// Returns the lane that this one reads from; a value >= the number of lanes if there is none.
unsigned source_of(const Meeting& meeting, unsigned lane, int operand) {
  const unsigned width = meeting.width;
  const unsigned first = lane & ~(width - 1);
  switch (meeting.kind) {
    case Exchange::Index: return first + (static_cast<unsigned>(operand) & (width - 1));
    case Exchange::Up: {
      const auto delta = static_cast<unsigned>(operand);
      return delta <= lane - first ? lane - delta : lane;
    }
    case Exchange::Down: {
      const auto delta = static_cast<unsigned>(operand);
      return delta < first + width - lane ? lane + delta : lane;
    }
    case Exchange::Xor: {
      const unsigned source = lane ^ static_cast<unsigned>(operand);
      return source < first + width ? source : lane;
    }
    default: return lane;
  }
}

} // namespace

// Inlined because the return address of a fiber switch is always mispredicted.
#define SIMT_INLINE __attribute__((always_inline)) inline

__thread Block* running_block;

Block::Block() {
  fibers_.reserve(kMaxThreads + 1); // no reallocation: references to contexts must stay valid
}

Block::~Block() { std::free(shared_); }

// ---- scheduling of threads

unsigned Block::current() const {
  return in_order ? threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z) : running_;
}

// Makes this thread the running one.
SIMT_INLINE void Block::start(unsigned thread) {
  running_ = thread;
  const uint3 size = shape_->block;
  if (size.x == count_) { // avoids the divisions
    threadIdx = {thread, 0, 0};
  } else {
    threadIdx = {thread % size.x, thread / size.x % size.y, thread / (size.x * size.y)};
  }
  if (under_tsan()) {
    threads_[thread].index = threadIdx;
  }
}

// Ends the phase in which threads run one after the other without waiting: from now on their state is tracked.
void Block::break_order() {
  if (!in_order) {
    return;
  }
  running_ = current();
  in_order = false;
  started_ = running_ + 1;
  live_ = count_ - running_;
  for (unsigned i = 0; i < running_; ++i) {
    mark_ended(i);
  }
}

void Block::mark_ended(unsigned thread) {
  ended_.add(thread);
  live_lanes_[thread >> warp_shift_] &= ~(Lanes{1} << (thread & (shape_->warp - 1)));
}

SIMT_INLINE unsigned Block::take_unstarted() {
  if (started_ == count_) {
    return kNobody;
  }
  const unsigned position = started_++;
  return order_.empty() ? position : order_[position];
}

SIMT_INLINE unsigned Block::next_ready() const {
  const size_t words = (count_ + 63) / 64;
  if (shape_->order == ThreadOrder::Reverse) {
    for (size_t i = words; i-- > 0;) {
      if (const uint64_t word = ready_.word(i); word != 0) {
        return static_cast<unsigned>(i * 64 + 63 - static_cast<size_t>(__builtin_clzll(word)));
      }
    }
    return kNobody;
  }
  const unsigned from =
      shape_->order == ThreadOrder::Random ? static_cast<unsigned>(step(random_) % count_) : running_ + 1;
  const size_t first = from / 64 % words;
  const uint64_t tail = ready_.word(first) >> (from % 64) << (from % 64);
  if (from < words * 64 && tail != 0) {
    return static_cast<unsigned>(first * 64 + static_cast<size_t>(__builtin_ctzll(tail)));
  }
  for (size_t i = 1; i <= words; ++i) {
    const size_t at = (first + i) % words;
    if (const uint64_t word = ready_.word(at); word != 0) {
      return static_cast<unsigned>(at * 64 + static_cast<size_t>(__builtin_ctzll(word)));
    }
  }
  return kNobody;
}

SIMT_INLINE void Block::begin_fiber() {
  if (free_fibers_.empty()) {
    free_fibers_.push_back(static_cast<unsigned>(fibers_.size()));
    fibers_.emplace_back();
  }
  running_fiber_ = free_fibers_.back();
  free_fibers_.pop_back();
  stacks_.begin(fibers_[running_fiber_], running_fiber_, &Block::enter, this);
}

// Switches from `from` to a thread that can run; if there is none, to the caller of drive().
SIMT_INLINE void Block::go_on(Context& from) {
  unsigned thread = next_ready();
  if (thread == kNobody && started_ == count_ && !groups_.empty() && release_converged()) {
    thread = next_ready();
  }
  if (thread != kNobody) {
    ready_.remove(thread);
    running_ = thread;
    threadIdx = threads_[thread].index;
    running_fiber_ = threads_[thread].fiber;
  } else if (const unsigned fresh = take_unstarted(); fresh != kNobody) {
    start(fresh);
    begin_fiber();
  } else {
    if (&from != &outside_) {
      switch_to(from, outside_);
    }
    return;
  }
  Context& to = fibers_[running_fiber_];
  if (&to != &from) {
    switch_to(from, to);
  }
}

SIMT_INLINE void Block::wait(WaitsFor what, const Site* site) {
  Thread& thread = threads_[running_];
  copy(thread.index, threadIdx);
  thread.waits_for = what;
  thread.site = site;
  thread.fiber = running_fiber_;
  go_on(fibers_[running_fiber_]);
  thread.waits_for = WaitsFor::Nothing;
}

void Block::enter(void* self) {
  Block& block = *static_cast<Block*>(self);
  acquire(&block.started_);
  try {
    block.body_(block.arguments_);
  } catch (const std::exception& error) {
    block.fail(std::string("the kernel threw an exception: ") + error.what(), /*asserted=*/false);
  } catch (...) {
    block.fail("the kernel threw an exception", /*asserted=*/false);
  }
  if (!under_tsan()) {
    block.free_fibers_.push_back(block.running_fiber_);
  }
  block.go_on(block.fibers_[block.running_fiber_]);
  std::abort(); // never reached: the fiber of this stack is free
}

// Called when the kernel's body has returned. Returns whether another thread runs on the same stack.
bool Block::next_thread() {
  if (in_order) {
    threadIdx.x = 0;
    if (++threadIdx.y < blockDim.y) {
      return true;
    }
    threadIdx.y = 0;
    if (++threadIdx.z < blockDim.z) {
      return true;
    }
    in_order = false;
    started_ = count_;
    live_ = 0;
    return false;
  }
  thread_ended();
  if (under_tsan()) {
    release(&live_);
    return false; // for the sanitizer, each thread has its own stack
  }
  const unsigned thread = take_unstarted();
  if (thread == kNobody) {
    return false;
  }
  start(thread);
  return true;
}

// Ends the thread in the middle of the kernel's body. Its stack is not reused before the block ends, because this
// code still runs on it.
void Block::exit_thread() {
  break_order();
  thread_ended();
  if (under_tsan()) {
    release(&live_);
  }
  go_on(fibers_[running_fiber_]);
  std::abort(); // never reached: the thread has ended
}

void Block::thread_ended() {
  mark_ended(running_);
  --live_;
  if (live_ > 0 && at_barrier_ == live_) {
    release_barrier();
  }
  const unsigned warp = running_ >> warp_shift_;
  for (size_t i = 0; i < groups_.size();) {
    // Groups may have waited only for this thread.
    i = groups_[i].warp == warp && complete(groups_[i]) ? 0 : i + 1;
  }
}

// ---- barriers

void Block::release_barrier() {
  switch (tally_kind_) {
    case Count::And: tally_result_ = tally_ == static_cast<int>(at_barrier_); break;
    case Count::Or: tally_result_ = tally_ != 0; break;
    default: tally_result_ = tally_;
  }
  tally_ = 0;
  at_barrier_ = 0;
  ready_.take_all(at_barrier_set_);
}

int Block::barrier(const Site* site, Count count, int predicate) {
  if (count_ == 1) {
    return predicate != 0;
  }
  break_order();
  release(&at_barrier_);
  tally_kind_ = count;
  tally_ += predicate != 0;
  if (++at_barrier_ == live_) {
    release_barrier();
  } else {
    at_barrier_set_.add(running_);
    wait(WaitsFor::Block, site);
  }
  acquire(&at_barrier_);
  return tally_result_;
}

void Block::grid_barrier(const Site* site) {
  break_order();
  ++at_grid_barrier_;
  at_grid_barrier_set_.add(running_);
  release(&at_grid_barrier_);
  wait(WaitsFor::Grid, site);
  acquire(&at_grid_barrier_);
}

// ---- warps

// Converts a 32-bit mask to lanes of the warp. In a wider warp, it applies to each group of 32 lanes.
Block::Lanes Block::named_by(unsigned mask) const {
  Lanes named = mask;
  if (shape_->warp > 32) {
    named |= named << 32;
    named |= named << 64;
  }
  return named;
}

void Block::meet(
    const Site* site, const Meeting& meeting, unsigned mask, const void* give, void* get, int operand, bool own_32) {
  break_order();
  const unsigned warp = running_ >> warp_shift_;
  const unsigned lane = running_ & (shape_->warp - 1);
  if ((mask >> (lane % 32) & 1) == 0) {
    fail("lane " + std::to_string(lane) + " calls " + where(site) + " with a mask that excludes it", false);
  }
  const Lanes named = own_32 ? Lanes{mask} << (lane / 32 * 32) : named_by(mask);
  auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& other) {
    return other.warp == warp && other.named == named && other.site == nullptr && other.meeting.kind == meeting.kind &&
        other.meeting.merge == meeting.merge;
  });
  if (group == groups_.end()) {
    group = groups_.insert(groups_.end(), Group{warp, named, meeting, 0});
  }
  arrive(*group, site, give, get, operand);
}

void Block::converge(const Site* site, const Meeting& meeting, const void* give, void* get, int operand) {
  break_order();
  const unsigned warp = running_ >> warp_shift_;
  auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& other) {
    return other.warp == warp && other.site != nullptr && other.site->line == site->line &&
        other.meeting.kind == meeting.kind && std::strcmp(other.site->file, site->file) == 0;
  });
  if (group == groups_.end()) {
    group = groups_.insert(groups_.end(), Group{warp, ~Lanes{0}, meeting, 0, site});
  }
  arrive(*group, site, give, get, operand);
}

void Block::arrive(Group& group, const Site* site, const void* give, void* get, int operand) {
  Thread& thread = threads_[running_];
  thread.give = give;
  thread.get = get;
  thread.operand = operand;
  group.arrived |= Lanes{1} << (running_ & (shape_->warp - 1));
  Thread& leader = threads_[group.warp * shape_->warp]; // the warp's synchronization object for the sanitizer
  release(&leader);
  if (!complete(group)) {
    wait(WaitsFor::Warp, site);
  } else {
    ready_.remove(running_); // continues without waiting
  }
  acquire(&leader);
}

// Returns false if live lanes are missing. Otherwise performs the exchange, makes the lanes ready, and removes the
// group.
bool Block::complete(Group& group) {
  if ((group.named & live_lanes_[group.warp] & ~group.arrived) != 0) {
    return false;
  }
  finish(group);
  return true;
}

void Block::finish(Group& group) {
  const unsigned first = group.warp * shape_->warp;
  acquire(&threads_[first]);
  move(group);
  release(&threads_[first]);
  ready_.add_all(first, static_cast<uint64_t>(group.arrived));
  if (shape_->warp > 64) {
    ready_.add_all(first + 64, static_cast<uint64_t>(group.arrived >> 64));
  }
  std::swap(group, groups_.back());
  groups_.pop_back();
}

// Called when no thread of the block can run, so the lanes that wait without a mask are all active lanes. The group
// at the lowest line continues, so that lanes of divergent branches converge after them (the order by the least
// program counter of Diamos et al.: SIMD re-convergence at thread frontiers; MICRO 2011).
bool Block::release_converged() {
  Group* first = nullptr;
  for (Group& group : groups_) {
    if (group.site != nullptr && (first == nullptr || group.site->line < first->site->line)) {
      first = &group;
    }
  }
  if (first == nullptr) {
    return false;
  }
  finish(*first);
  return true;
}

// The element size is a template parameter, so that the compiler can inline the copies.
template <size_t bytes>
void Block::shuffle(const Group& group) {
  Thread* const lanes = &threads_[group.warp * shape_->warp];
  for (unsigned lane = 0; lane < shape_->warp; ++lane) {
    if ((group.arrived >> lane & 1) == 0) {
      continue;
    }
    const unsigned source = source_of(group.meeting, lane, lanes[lane].operand);
    const size_t size = bytes != 0 ? bytes : group.meeting.bytes;
    if (source < shape_->warp && (group.arrived >> source & 1) != 0) {
      std::memcpy(lanes[lane].get, lanes[source].give, size);
    } else {
      std::memset(lanes[lane].get, kFreshByte, size); // undefined on a GPU
    }
  }
}

void Block::move(const Group& group) {
  Thread* const lanes = &threads_[group.warp * shape_->warp];
  const Meeting& meeting = group.meeting;
  const auto arrived = [&](unsigned lane) { return lane < shape_->warp && (group.arrived >> lane & 1) != 0; };
  const auto for_each = [&](auto&& body) {
    for (unsigned lane = 0; lane < shape_->warp; ++lane) {
      if (arrived(lane)) {
        body(lane);
      }
    }
  };
  if (meeting.merge != nullptr) {
    alignas(16) char sum[64];
    bool first = true;
    for_each([&](unsigned lane) {
      first ? (void)std::memcpy(sum, lanes[lane].give, meeting.bytes) : meeting.merge(sum, lanes[lane].give);
      first = false;
    });
    for_each([&](unsigned lane) { std::memcpy(lanes[lane].get, sum, meeting.bytes); });
    return;
  }
  switch (meeting.kind) {
    case Exchange::Sync: return;
    case Exchange::Index:
    case Exchange::Up:
    case Exchange::Down:
    case Exchange::Xor:
      switch (meeting.bytes) {
        case 4: shuffle<4>(group); return;
        case 8: shuffle<8>(group); return;
        default: shuffle<0>(group); return;
      }
    case Exchange::Ballot:
    case Exchange::Any:
    case Exchange::All: {
      unsigned votes[4] = {}; // one word per 32 lanes
      bool any = false;
      bool all = true;
      for_each([&](unsigned lane) {
        const bool vote = *static_cast<const int*>(lanes[lane].give) != 0;
        votes[lane / 32] |= static_cast<unsigned>(vote) << (lane % 32);
        any = any || vote;
        all = all && vote;
      });
      for_each([&](unsigned lane) {
        const unsigned result = meeting.kind == Exchange::Ballot ? votes[lane / 32]
            : meeting.kind == Exchange::Any                      ? static_cast<unsigned>(any)
                                                                 : static_cast<unsigned>(all);
        *static_cast<unsigned*>(lanes[lane].get) = result;
      });
      return;
    }
    case Exchange::MatchAny:
    case Exchange::MatchAll:
      for_each([&](unsigned lane) {
        unsigned same = 0;
        bool all = true;
        for_each([&](unsigned other) {
          const bool equal = std::memcmp(lanes[lane].give, lanes[other].give, meeting.bytes) == 0;
          same |= static_cast<unsigned>(equal && other / 32 == lane / 32) << (other % 32);
          all = all && equal;
        });
        *static_cast<unsigned*>(lanes[lane].get) = meeting.kind == Exchange::MatchAny || all ? same : 0;
      });
      return;
  }
}

// ---- shared memory

void Block::lay_red_zone(char* place) {
  fill(place, kRedZoneByte, kRedZone);
  if (&__asan_poison_memory_region != nullptr) {
    __asan_poison_memory_region(place, kRedZone);
  }
}

void* Block::dynamic_shared() { return shared_ + kRedZone; }

void* Block::shared(const Site* site, const void* key, size_t bytes, size_t alignment) {
  for (const SharedVariable& variable : variables_) {
    if (variable.key == key) {
      return variable.data;
    }
  }
  const size_t offset = (shared_used_ + alignment - 1) / alignment * alignment;
  shared_asked_ += bytes;
  if (shared_asked_ > shape_->shared_limit || offset + bytes + kRedZone > shared_capacity_) {
    fail(
        "shared memory: " + std::to_string(shared_asked_) + " bytes with " + where(site) + ", but the limit is " +
            std::to_string(shape_->shared_limit),
        false);
  }
  char* data = shared_ + offset;
  shared_used_ = offset + (bytes + 15) / 16 * 16 + kRedZone;
  if (shape_->poison) {
    fill(data, kFreshByte, bytes);
  }
  lay_red_zone(data + (bytes + 15) / 16 * 16);
  variables_.push_back({key, *site, data, bytes});
  return data;
}

// Returns the shared variable that was written out of bounds, or an empty string.
std::string Block::overrun() const {
  const auto touched = [](const char* place) {
    return std::any_of(
        place, place + kRedZone, [](char byte) { return static_cast<unsigned char>(byte) != kRedZoneByte; });
  };
  for (const SharedVariable& variable : variables_) {
    if (touched(variable.data + (variable.bytes + 15) / 16 * 16)) {
      return where(&variable.site);
    }
  }
  return shape_->dynamic_shared != 0 && touched(shared_ + kRedZone + (shape_->dynamic_shared + 15) / 16 * 16)
      ? "dynamic shared memory"
      : "";
}

// ---- running a block

void Block::reset(const LaunchShape& shape, uint3 index, Body body, void** arguments) {
  const bool same_launch = shape_ == &shape;
  shape_ = &shape;
  body_ = body;
  arguments_ = arguments;
  index_ = index;
  count_ = shape.block.x * shape.block.y * shape.block.z;
  started_ = 0;
  live_ = count_;
  at_barrier_ = at_grid_barrier_ = 0;
  tally_ = 0;
  ready_.clear();
  at_barrier_set_.clear();
  at_grid_barrier_set_.clear();
  ended_.clear();
  groups_.clear();
  warp_shift_ = static_cast<unsigned>(__builtin_ctz(shape.warp));
  const unsigned warps = (count_ + shape.warp - 1) / shape.warp;
  const Lanes all = ~Lanes{0} >> (128 - shape.warp);
  std::fill_n(live_lanes_.begin(), warps, all);
  if (const unsigned rest = count_ % shape.warp; rest != 0) {
    live_lanes_[warps - 1] = ~Lanes{0} >> (128 - rest);
  }
  if (failed_ || free_fibers_.size() != fibers_.size()) { // stacks of threads that did not return
    free_fibers_.clear();
    for (unsigned i = 0; i < fibers_.size(); ++i) {
      free_fibers_.push_back(i);
    }
  }
  if (under_tsan()) { // under TSAN each GPU thread has its own fiber and stack
    if (failed_) {
      std::for_each(fibers_.begin(), fibers_.end(), end);
    }
    fibers_.resize(std::max<size_t>(fibers_.size(), count_));
    std::for_each_n(fibers_.begin(), count_, announce);
    free_fibers_.clear();
    for (unsigned i = count_; i-- > 0;) {
      free_fibers_.push_back(i);
    }
    // Allocated in advance: a reallocation while threads run would be reported as their race.
    stacks_.reserve(count_);
    groups_.reserve(count_);
    variables_.reserve(256);
  }
  failed_ = asserted_ = false;
  variables_.clear();
  const size_t capacity = shape.shared_limit + 64 * kRedZone + (16 << 10);
  if (shared_capacity_ < capacity) {
    std::free(shared_);
    shared_ = static_cast<char*>(std::aligned_alloc(256, (capacity + 255) / 256 * 256));
    if (shared_ == nullptr) {
      throw std::bad_alloc();
    }
    shared_capacity_ = capacity;
  }
  if (&__asan_unpoison_memory_region != nullptr) {
    __asan_unpoison_memory_region(shared_, shared_capacity_);
  }
  shared_asked_ = shape.dynamic_shared;
  shared_used_ = kRedZone;
  if (shape.dynamic_shared != 0) {
    const size_t bytes = (shape.dynamic_shared + 15) / 16 * 16;
    if (shape.poison) {
      fill(shared_ + kRedZone, kFreshByte, shape.dynamic_shared);
    }
    lay_red_zone(shared_);
    lay_red_zone(shared_ + kRedZone + bytes);
    shared_used_ = 2 * kRedZone + bytes;
  }
  if (!same_launch || shape.order == ThreadOrder::Random || order_.size() > count_) {
    order_.clear();
  }
  if (shape.order != ThreadOrder::Forward && order_.size() != count_) {
    order_.resize(count_);
    for (unsigned i = 0; i < count_; ++i) {
      order_[i] = shape.order == ThreadOrder::Reverse ? count_ - 1 - i : i;
    }
  }
  if (shape.order == ThreadOrder::Random) {
    random_ = (shape.seed + 1) * 0x9E3779B97F4A7C15u + index.x + (uint64_t{index.y} << 20) + (uint64_t{index.z} << 40);
    for (unsigned i = count_; i > 1; --i) {
      std::swap(order_[i - 1], order_[step(random_) % i]);
    }
  }
}

Block::Outcome Block::run(const LaunchShape& shape, uint3 index, Body body, void** arguments) {
  reset(shape, index, body, arguments);
  return drive();
}

Block::Outcome Block::resume() {
  at_grid_barrier_ = 0;
  ready_.take_all(at_grid_barrier_set_);
  return drive();
}

Block::Outcome Block::drive() {
  // Restored at the end, because a kernel that launches another one continues afterwards.
  const struct {
    uint3 thread = threadIdx, block = blockIdx, block_dim = blockDim, grid_dim = gridDim;
    int warp = warpSize;
    bool in_order = musa_simt::in_order;
  } before;
  blockDim = shape_->block;
  gridDim = shape_->grid;
  blockIdx = index_;
  warpSize = static_cast<int>(shape_->warp);
  Block* const outer = std::exchange(running_block, this);
  outside_ = current_context();
  release(&started_);
  if (started_ == 0 && order_.empty() && !under_tsan()) {
    in_order = true;
    threadIdx = {0, 0, 0};
    begin_fiber();
    switch_to(outside_, fibers_[running_fiber_]);
  } else {
    in_order = false;
    go_on(outside_);
  }
  acquire(&live_);
  in_order = false;
  running_block = outer;
  if (outer != nullptr) {
    threadIdx = before.thread;
    blockIdx = before.block;
    blockDim = before.block_dim;
    gridDim = before.grid_dim;
    warpSize = before.warp;
    in_order = before.in_order;
  }
  if (failed_) {
    return Outcome::Failed;
  }
  if (live_ != 0) {
    if (at_grid_barrier_ == live_) {
      return Outcome::AtGridBarrier;
    }
    problem_ = describe_deadlock();
    failed_ = true;
    return Outcome::Failed;
  }
  if (const std::string variable = overrun(); !variable.empty()) {
    problem_ = "out-of-bounds write after the end of " + variable;
    failed_ = true;
    return Outcome::Failed;
  }
  return Outcome::Done;
}

void Block::fail(std::string problem, bool asserted) {
  problem_ = std::move(problem);
  asserted_ = asserted;
  failed_ = true;
  const unsigned thread = current();
  const uint3 size = shape_->block;
  problem_ += "; thread (" + std::to_string(thread % size.x) + ", " + std::to_string(thread / size.x % size.y) + ", " +
      std::to_string(thread / (size.x * size.y)) + ")";
  switch_to(fibers_[running_fiber_], outside_);
  std::abort(); // never reached: the stack is abandoned
}

std::string Block::describe_deadlock() const {
  struct Crowd {
    const Site* site;
    WaitsFor what;
    unsigned threads;
  };
  std::vector<Crowd> crowds;
  for (unsigned i = 0; i < count_; ++i) {
    const Thread& thread = threads_[i];
    if (ended_.has(i)) {
      continue;
    }
    const auto crowd = std::find_if(crowds.begin(), crowds.end(), [&](const Crowd& other) {
      return other.what == thread.waits_for && where(other.site) == where(thread.site);
    });
    if (crowd == crowds.end()) {
      crowds.push_back({thread.site, thread.waits_for, 1});
    } else {
      ++crowd->threads;
    }
  }
  std::string text = "deadlock:";
  for (const Crowd& crowd : crowds) {
    text += (&crowd == crowds.data() ? " " : ", ") + std::to_string(crowd.threads) + " of " + std::to_string(count_) +
        " threads wait at " + where(crowd.site);
  }
  return text + ", for threads that never arrive";
}

} // namespace musa_emulator::simt
