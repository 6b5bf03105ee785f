// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/allocator/MUSAAllocatorMutex.h>
#include <c10/musa/allocator/MUSABlockPool.h>

#include <deque>
#include <functional>
#include <unordered_map>

namespace c10::musa::MUSACachingAllocator {

// Blocks that were freed while other streams (Block::stream_uses) may still use them. A block waits until an event on each
// of these streams has finished. While a stream of the process captures, no event is recorded or queried; blocks that are
// freed during a capture are deferred until it has ended. A wait for an event delays no capture.
//
// Guarded by the mutex of the allocator, which each function below takes locked and returns locked. They unlock it for
// calls of the SDK, since queued work that runs inside may free memory itself.
class PendingFrees {
 public:
  using Lock = AllocatorLock;
  enum class Wait { No, Yes };

  // finished: called with each block that no stream uses any more, under the mutex.
  explicit PendingFrees(std::function<void(Block*)> finished) : finished_(std::move(finished)) {}

  // Whether process() has no event to query.
  bool empty() const { return events_.empty(); }

  // The block was allocated, and is in no bin. It finishes immediately if no event can be recorded on its streams.
  void add(Block* block, Lock& lock);
  // Finishes the blocks whose events have finished, and with Wait::Yes all. Does nothing during a capture. Raises if the
  // SDK fails; unfinished blocks are kept.
  void process(Wait wait, Lock& lock);
  // After a capture: adds the deferred blocks again.
  void add_deferred(Lock& lock);

 private:
  struct PendingEvent {
    musaEvent_t event;
    Block* block;
  };

  const std::function<void(Block*)> finished_;
  std::unordered_map<MUSAStream, std::deque<PendingEvent>> events_; // no empty queues
  std::vector<Block*> deferred_; // unavailable by pending_events
};

} // namespace c10::musa::MUSACachingAllocator
