// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "events.h"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace c10d::mccl {
namespace {

using c10::musa::MUSAEvent;

constexpr size_t kKept = 256; // of each kind

struct Pool {
  std::mutex mutex; // a leaf
  std::map<std::pair<c10::DeviceIndex, bool>, std::vector<std::unique_ptr<MUSAEvent>>> free;
};

Pool& pool() {
  static Pool& instance = *new Pool(); // calls may outlive static objects
  return instance;
}

} // namespace

std::shared_ptr<MUSAEvent> own_event(bool timing) {
  return std::make_shared<MUSAEvent>(timing ? musaEventDefault : musaEventDisableTiming);
}

std::shared_ptr<MUSAEvent> pooled_event(c10::DeviceIndex device, bool timing) {
  const auto kind = std::make_pair(device, timing);
  std::unique_ptr<MUSAEvent> event;
  {
    const std::lock_guard lock(pool().mutex);
    auto& free = pool().free[kind];
    if (!free.empty()) {
      event = std::move(free.back());
      free.pop_back();
    }
  }
  if (event == nullptr) {
    event = std::make_unique<MUSAEvent>(timing ? musaEventDefault : musaEventDisableTiming);
  }
  return {event.release(), [kind](MUSAEvent* used) {
            std::unique_ptr<MUSAEvent> owned(used); // destroyed after the lock is released, if the pool is full
            const std::lock_guard lock(pool().mutex);
            auto& free = pool().free[kind];
            if (free.size() < kKept) {
              free.push_back(std::move(owned));
            }
          }};
}

} // namespace c10d::mccl
