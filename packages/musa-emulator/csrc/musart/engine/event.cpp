// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/event.h"

#include <chrono>

#include "engine/activity.h"
#include "engine/api.h"
#include "engine/capture.h"
#include "engine/device.h"
#include "engine/interprocess.h"
#include "engine/stream.h"

namespace musa_emulator {
namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// All live events, for a reset.
std::vector<Event*>& live_events() {
  static auto* events = new std::vector<Event*>;
  return *events;
}

void release_event(Event& event) {
  Engine& state = engine();
  event.magic.store(Event::kDead);
  ++event.generation; // a pending record must not complete the next event with this handle
  event.capture_frontier.clear();
  event.shared.reset();
  live_events()[event.place] = live_events().back();
  live_events()[event.place]->place = event.place;
  live_events().pop_back();
  state.free_events.push_back(&event); // reused in FIFO order, so that a stale handle is detected as long as possible
  state.live_events.fetch_sub(1);
}

} // namespace

musaError_t create_event(Device& device, unsigned flags, Event** event) {
  constexpr unsigned known = musaEventBlockingSync | musaEventDisableTiming | musaEventInterprocess;
  const bool interprocess = (flags & musaEventInterprocess) != 0;
  // The clock cannot be read across processes, so the driver requires both flags.
  if ((flags & ~known) != 0 || (interprocess && (flags & musaEventDisableTiming) == 0)) {
    return musaErrorInvalidValue;
  }
  std::shared_ptr<InterprocessEvent> shared;
  if (interprocess) {
    if (const musaError_t status = create_interprocess(&shared); status != musaSuccess) {
      return status;
    }
  }
  Engine& state = engine();
  Lock lock(state.mutex);
  Event* created = nullptr;
  if (state.free_events.empty()) {
    created = new Event;
  } else {
    created = state.free_events.front();
    state.free_events.pop_front();
  }
  created->flags = flags;
  created->device = &device;
  created->fence = {};
  created->nanoseconds = 0;
  created->capture_id = 0;
  created->shared = std::move(shared);
  created->recorded = false;
  created->magic.store(Event::kAlive, std::memory_order_release);
  created->place = live_events().size();
  live_events().push_back(created);
  state.live_events.fetch_add(1);
  *event = created;
  return musaSuccess;
}

musaError_t destroy_event(Event* event) {
  Lock lock(engine().mutex);
  release_event(*event);
  return musaSuccess;
}

void release_all_events() {
  while (!live_events().empty()) {
    release_event(*live_events().back());
  }
}

Event* resolve_event(musaEvent_t handle) {
  return handle != nullptr && handle->magic.load(std::memory_order_acquire) == Event::kAlive ? handle : nullptr;
}

RecordOperation begin_record(Event& event, Stream& stream) {
  ++event.generation;
  event.recorded = true;
  event.capture_id = 0;
  event.capture_frontier.clear();
  event.nanoseconds = 0;
  event.fence = {&stream, stream.submitted.load(std::memory_order_relaxed) + 1};
  RecordOperation record{&event, event.generation, nullptr, 0};
  if (event.shared) {
    record.shared = event.shared;
    record.target = begin_interprocess_record(*event.shared);
  }
  return record;
}

void finish_record(const RecordOperation& record) {
  if (record.shared) {
    finish_interprocess_record(*record.shared, record.target);
  }
  Event& event = *record.event;
  if (event.generation == record.generation && (event.flags & musaEventDisableTiming) == 0) {
    event.nanoseconds = now();
  }
}

musaError_t record_event(Event& event, Stream& stream, unsigned flags) {
  if ((flags & ~unsigned{musaEventRecordExternal}) != 0) {
    return musaErrorInvalidValue;
  }
  if (event.device != stream.device) {
    return musaErrorInvalidResourceHandle;
  }
  Engine& state = engine();
  Lock lock(state.mutex);
  if ((flags & musaEventRecordExternal) != 0 && stream.capture.load(std::memory_order_relaxed) == nullptr) {
    return musaErrorIllegalState;
  }
  if (state.active_captures.load(std::memory_order_relaxed) != 0) {
    if (stream.capture.load(std::memory_order_relaxed) != nullptr) {
      // An external record becomes a node; another record only marks a point in the captured work.
      return (flags & musaEventRecordExternal) != 0 ? capture_operation(stream, RecordOperation{&event})
                                                    : capture_record(stream, event);
    }
    if (const musaError_t status = forbid_implicit_dependency(stream); status != musaSuccess) {
      return status;
    }
  }
  if (const musaError_t lost = stream.device->lost.load(std::memory_order_relaxed); lost != musaSuccess) {
    return lost;
  }
  submit_locked(stream, begin_record(event, stream), {}, lock);
  if (event.shared && state.config.mode == Mode::Lazy) {
    drive(event.fence); // another process may wait for it, and no thread here
  }
  return musaSuccess;
}

musaError_t wait_event(Stream& stream, Event& event, unsigned flags) {
  if ((flags & ~unsigned{musaEventWaitExternal}) != 0) {
    return musaErrorInvalidValue;
  }
  Engine& state = engine();
  Lock lock(state.mutex);
  if ((flags & musaEventWaitExternal) != 0 && stream.capture.load(std::memory_order_relaxed) == nullptr) {
    return musaErrorIllegalState;
  }
  if (state.active_captures.load(std::memory_order_relaxed) != 0 || event.capture_id != 0) {
    bool captured = false;
    const musaError_t status = capture_wait(stream, event, flags, &captured);
    if (captured || status != musaSuccess) {
      return status;
    }
    if (const musaError_t implicit = forbid_implicit_dependency(stream); implicit != musaSuccess) {
      return implicit;
    }
  }
  if (const musaError_t lost = stream.device->lost.load(std::memory_order_relaxed); lost != musaSuccess) {
    return lost;
  }
  const SynchronizationScope scope(SynchronizationType::StreamWaitEvent, *stream.device, &stream);
  if (event.shared) {
    const uint64_t target = interprocess_recorded(*event.shared);
    if (!interprocess_reached(*event.shared, target)) {
      // The fence makes a record of this process run, if no thread waits for it.
      submit_locked(stream, InterprocessWaitOperation{event.shared, target}, {event.fence}, lock);
    }
    return musaSuccess;
  }
  if (!event.fence.reached() && event.fence.stream != &stream) {
    submit_locked(stream, EmptyOperation{}, {event.fence}, lock);
  }
  return musaSuccess;
}

musaError_t query_event(Event& event) {
  Lock lock(engine().mutex);
  if (event.capture_id != 0) {
    return forbid_captured_event(event);
  }
  if (event.shared) {
    if (!interprocess_reached(*event.shared, interprocess_recorded(*event.shared))) {
      if (event.fence.stream != nullptr) {
        nudge(event.fence, lock);
      }
      return musaErrorNotReady;
    }
  } else if (!event.fence.reached()) {
    nudge(event.fence, lock);
    return musaErrorNotReady;
  }
  return event.device->lost.load();
}

musaError_t synchronize_event(Event& event) {
  if (const musaError_t status = may_wait(); status != musaSuccess) {
    return status;
  }
  Lock lock(engine().mutex);
  if (event.capture_id != 0) {
    return forbid_captured_event(event);
  }
  // Waits for the record that is the latest now; the event may be recorded again while the lock is released.
  const std::shared_ptr<InterprocessEvent> shared = event.shared;
  const uint64_t target = shared ? interprocess_recorded(*shared) : 0;
  Device& device = *event.device;
  const SynchronizationScope scope(SynchronizationType::Event, device, event.fence.stream);
  if (const Fence fence = event.fence; fence.stream != nullptr) {
    wait_for(fence, lock);
  }
  if (shared) {
    lock.unlock();
    wait_interprocess(*shared, target);
  }
  return device.lost.load();
}

musaError_t elapsed_time(Event& start, Event& end, float* milliseconds) {
  Lock lock(engine().mutex);
  if (start.device != end.device) {
    return musaErrorInvalidResourceHandle;
  }
  for (Event* event : {&start, &end}) {
    if (event->capture_id != 0) {
      return musaErrorCapturedEvent; // does not invalidate the capture
    }
    if ((event->flags & musaEventDisableTiming) != 0 || !event->recorded) {
      return musaErrorInvalidResourceHandle;
    }
    if (!event->fence.reached()) {
      nudge(event->fence, lock);
      return musaErrorNotReady;
    }
  }
  *milliseconds = static_cast<float>(end.nanoseconds - start.nanoseconds) / 1e6F;
  return musaSuccess;
}

musaError_t export_event(Event& event, musaIpcEventHandle_t* handle) {
  Lock lock(engine().mutex);
  if (!event.shared) {
    return musaErrorInvalidResourceHandle; // created without musaEventInterprocess
  }
  return export_interprocess(*event.shared, event.device->ordinal, handle);
}

musaError_t import_event(Device& device, const musaIpcEventHandle_t& handle, Event** event) {
  std::shared_ptr<InterprocessEvent> shared;
  if (const musaError_t status = import_interprocess(handle, &shared); status != musaSuccess) {
    return status;
  }
  if (const musaError_t status = create_event(device, musaEventDisableTiming, event); status != musaSuccess) {
    return status;
  }
  Lock lock(engine().mutex);
  (*event)->flags |= musaEventInterprocess;
  (*event)->shared = std::move(shared);
  return musaSuccess;
}

} // namespace musa_emulator
