// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/allocator/MUSAPendingFrees.h>

#include <c10/musa/allocator/MUSAAllocatorEvents.h>
#include <c10/musa/MUSACaptures.h>
#include <c10/musa/MUSAException.h>

namespace c10::musa::MUSACachingAllocator {

void PendingFrees::add(Block* block, Lock& lock) {
  std::optional<BetweenCaptures> between = BetweenCaptures::enter();
  if (!between) {
    block->pending_events = 1; // not available, see add_deferred
    deferred_.push_back(block);
    return;
  }
  const std::vector<MUSAStream> uses = std::move(block->stream_uses);
  block->stream_uses.clear();
  block->pending_events = uses.size();
  std::vector<musaEvent_t> events(uses.size(), nullptr);
  lock.unlock();
  const char* call = nullptr; // not reported
  for (size_t i = 0; i < uses.size(); ++i) {
    if (record_event(*between, uses[i].device_index(), uses[i].stream(), &events[i], &call) != musaSuccess) {
      C10_MUSA_CLEAR_ERROR();
    }
  }
  between.reset();
  for (size_t i = 0; i < uses.size(); ++i) {
    if (events[i] == nullptr) {
      // Without an event, the stream itself is synchronized. If that fails too, the device is lost and no work runs on it.
      C10_MUSA_IGNORE_ERROR(relaxed([&] { return musaStreamSynchronize(uses[i].stream()); }));
    }
  }
  lock.lock();
  for (size_t i = 0; i < uses.size(); ++i) {
    if (events[i] != nullptr) {
      events_[uses[i]].push_back({events[i], block});
    } else {
      --block->pending_events;
    }
  }
  if (block->pending_events == 0) {
    finished_(block);
  }
}

// Events of one stream finish in order, so the first unfinished one ends the loop over that stream.
void PendingFrees::process(Wait wait, Lock& lock) {
  std::optional<BetweenCaptures> between = BetweenCaptures::enter();
  if (!between) {
    return;
  }
  if (wait == Wait::Yes) {
    between.reset(); // a wait could last until another thread has captured
  }
  std::vector<MUSAStream> streams;
  streams.reserve(events_.size());
  for (const auto& entry : events_) {
    streams.push_back(entry.first);
  }
  for (const MUSAStream& stream : streams) {
    while (true) {
      const auto queue = events_.find(stream);
      if (queue == events_.end()) {
        break; // emptied, perhaps by another thread while the mutex was unlocked
      }
      const PendingEvent pending = queue->second.front();
      queue->second.pop_front();
      if (queue->second.empty()) {
        events_.erase(queue);
      }
      lock.unlock();
      const musaError_t error = wait == Wait::Yes ? wait_for_event(pending.event) : poll_event(*between, pending.event);
      lock.lock();
      if (error != musaSuccess && !is_unloading(error)) {
        events_[stream].push_front(pending);
        if (error == musaErrorNotReady) {
          C10_MUSA_CLEAR_ERROR();
          break;
        }
        throw_musa_error(
            error, wait == Wait::Yes ? "musaEventSynchronize(event)" : "musaEventQuery(event)", __func__, __FILE__,
            __LINE__);
      }
      recycle_event(stream.device_index(), pending.event);
      if (--pending.block->pending_events == 0) {
        finished_(pending.block);
      }
    }
  }
}

void PendingFrees::add_deferred(Lock& lock) {
  const std::vector<Block*> blocks = std::move(deferred_);
  deferred_.clear();
  for (Block* block : blocks) {
    add(block, lock);
  }
}

} // namespace c10::musa::MUSACachingAllocator
