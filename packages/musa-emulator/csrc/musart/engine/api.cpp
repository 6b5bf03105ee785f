// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/api.h"

#include <bit>
#include <cstring>

namespace musa_emulator {
namespace {

// Written while libraries are loaded, before any call; read-only afterwards.
constinit ApiEntry* first_entry = nullptr;

} // namespace

constinit std::atomic<uint32_t> gate{kGateUninitialized};

ApiEntry::ApiEntry(const char* entry_name) noexcept : name(entry_name), next(first_entry) { first_entry = this; }

ApiEntry* find_api(const char* name) {
  for (ApiEntry* entry = first_entry; entry != nullptr; entry = entry->next) {
    if (std::strcmp(entry->name, name) == 0) {
      return entry;
    }
  }
  return nullptr;
}

uint64_t total_calls() {
  uint64_t total = 0;
  for (ApiEntry* entry = first_entry; entry != nullptr; entry = entry->next) {
    total += entry->calls.value();
  }
  return total;
}

namespace {

// A bit for each part of the counts that belongs to a thread. Part 0 is shared, and its bit is always set.
std::atomic<unsigned> taken_parts{1};

// A thread that takes a part must see the counts of its previous owner. Under a race detector the order is relaxed,
// because an ordering would hide races on other data of the two threads; on its processors the locked instruction
// suffices.
#ifdef __SANITIZE_THREAD__
constexpr auto kTakeOver = std::memory_order_relaxed;
constexpr auto kHandOver = std::memory_order_relaxed;
#else
constexpr auto kTakeOver = std::memory_order_acquire;
constexpr auto kHandOver = std::memory_order_release;
#endif

// The lowest part that no living thread owns, or the shared part if all are taken. Released when the thread exits.
class CountPart {
 public:
  CountPart() {
    unsigned taken = taken_parts.load(std::memory_order_relaxed);
    do {
      value = static_cast<unsigned>(std::countr_one(taken));
    } while (value < ThreadState::kCountParts &&
             !taken_parts.compare_exchange_weak(taken, taken | 1U << value, kTakeOver, std::memory_order_relaxed));
    value %= ThreadState::kCountParts;
  }
  ~CountPart() {
    if (value != 0) {
      thread_state().own_count_part = 0; // destructors of other thread-local objects may still make calls
      taken_parts.fetch_and(~(1U << value), kHandOver);
    }
  }
  CountPart(const CountPart&) = delete;
  CountPart& operator=(const CountPart&) = delete;

  unsigned value = 0;
};

} // namespace

unsigned ThreadState::take_count_part() noexcept {
  static thread_local const CountPart part;
  return own_count_part = part.value;
}

constinit thread_local ThreadState current_thread_state;

} // namespace musa_emulator
