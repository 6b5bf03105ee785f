// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/stream.h"

#include <algorithm>

#include "engine/activity.h"
#include "engine/api.h"
#include "engine/capture.h"
#include "engine/device.h"

namespace musa_emulator {
namespace {

// The per-thread default streams of one thread, one per device; destroyed when the thread exits.
struct ThreadStreams {
  std::map<int, std::pair<Stream*, uint64_t>> by_device; // with the id, to detect a reused handle

  ~ThreadStreams() {
    if (gate.load(std::memory_order_acquire) & (kGateForked | kGateUnloading)) {
      return;
    }
    for (const auto& [device, owned] : by_device) {
      if (owned.first->id == owned.second) {
        destroy_stream(owned.first);
      }
    }
  }
};

Stream* per_thread_stream(Device& device) {
  thread_local ThreadStreams streams;
  auto& [stream, id] = streams.by_device[device.ordinal];
  if (stream == nullptr || stream->id != id || stream->magic.load() != Stream::kAlive) {
    if (create_stream(device, musaStreamDefault, kLeastPriority, &stream) != musaSuccess) {
      return nullptr;
    }
    id = stream->id;
    stream->owned_by_user = false;
    engine().live_streams.fetch_sub(1);
  }
  return stream;
}

} // namespace

musaError_t create_stream(Device& device, unsigned flags, int priority, Stream** stream) {
  if ((flags & ~unsigned{musaStreamNonBlocking}) != 0) {
    return musaErrorInvalidValue;
  }
  Engine& state = engine();
  Lock lock(state.mutex);
  Stream* created = nullptr;
  if (state.free_streams.empty()) {
    created = new Stream;
  } else {
    created = state.free_streams.front();
    state.free_streams.pop_front();
  }
  created->device = &device;
  created->flags = flags;
  created->priority = std::clamp(priority, kGreatestPriority, kLeastPriority);
  created->id = state.next_stream_id++;
  created->legacy = false;
  created->owned_by_user = true;
  device.streams.push_back(created);
  created->magic.store(Stream::kAlive, std::memory_order_release);
  state.live_streams.fetch_add(1);
  *stream = created;
  return musaSuccess;
}

musaError_t destroy_stream(musaStream_t handle) {
  Engine& state = engine();
  OwnedGraph discarded; // destroyed after the lock is released
  Lock lock(state.mutex);
  if (handle == nullptr || handle == musaStreamLegacy || handle == musaStreamPerThread ||
      handle->magic.load() != Stream::kAlive || handle->legacy) {
    return musaErrorInvalidResourceHandle;
  }
  Stream& stream = *handle;
  if (stream.capture.load() != nullptr) {
    discarded = leave_capture(stream);
  }
  stream.magic.store(Stream::kDead);
  if (stream.owned_by_user) {
    state.live_streams.fetch_sub(1);
  }
  if (stream.idle()) {
    recycle_stream(stream);
  }
  return musaSuccess;
}

void recycle_stream(Stream& stream) {
  Engine& state = engine();
  std::erase(stream.device->streams, &stream);
  // Reused in FIFO order, so that a stale handle is detected as long as possible.
  state.free_streams.push_back(&stream);
}

Stream* resolve_stream(musaStream_t handle) {
  if (handle == nullptr || handle == musaStreamLegacy) {
    Device* device = current_device();
    return device != nullptr ? device->legacy : nullptr;
  }
  if (handle == musaStreamPerThread) {
    Device* device = current_device();
    return device != nullptr ? per_thread_stream(*device) : nullptr;
  }
  if (handle->magic.load(std::memory_order_acquire) != Stream::kAlive) {
    return nullptr;
  }
  if (!handle->device->active.load(std::memory_order_relaxed)) {
    handle->device->active.store(true, std::memory_order_relaxed);
  }
  return handle;
}

musaError_t synchronize_stream(Stream& stream) {
  if (const musaError_t status = may_wait(); status != musaSuccess) {
    return status;
  }
  if (const musaError_t status = forbid_on_capturing(stream); status != musaSuccess) {
    return status;
  }
  const SynchronizationScope scope(SynchronizationType::Stream, *stream.device, &stream);
  if (stream.idle() && !stream.legacy) {
    return stream.device->lost.load(std::memory_order_acquire);
  }
  Lock lock(engine().mutex);
  for (const Fence& fence : fences_of(stream)) {
    wait_for(fence, lock);
  }
  return stream.device->lost.load();
}

musaError_t query_stream(Stream& stream) {
  if (const musaError_t status = forbid_on_capturing(stream); status != musaSuccess) {
    return status;
  }
  const bool idle =
      stream.legacy ? stream.device->pending_blocking.load(std::memory_order_acquire) == 0 : stream.idle();
  if (!idle) {
    Lock lock(engine().mutex);
    for (const Fence& fence : fences_of(stream)) {
      if (!fence.reached()) {
        nudge(fence, lock);
        return musaErrorNotReady;
      }
    }
  }
  return stream.device->lost.load(std::memory_order_acquire);
}

void release_streams(Device& device, Lock& lock) {
  const std::vector<Stream*> streams = device.streams;
  for (Stream* stream : streams) {
    wait_for({stream, stream->submitted.load()}, lock);
    if (!stream->legacy && stream->magic.load() == Stream::kAlive) {
      stream->magic.store(Stream::kDead);
      if (stream->owned_by_user) {
        engine().live_streams.fetch_sub(1);
      }
      recycle_stream(*stream);
    }
  }
}

void create_default_streams(Engine& state) {
  for (const auto& device : state.devices) {
    create_stream(*device, musaStreamDefault, kLeastPriority, &device->legacy);
    device->legacy->legacy = true;
    device->legacy->owned_by_user = false;
  }
  state.live_streams.store(0);
}

musaError_t synchronize_device(Device& device) {
  if (const musaError_t status = may_wait(); status != musaSuccess) {
    return status;
  }
  if (const musaError_t status = forbid_while_capturing(); status != musaSuccess) {
    return status;
  }
  return wait_for_device(device);
}

musaError_t wait_for_device(Device& device) {
  const SynchronizationScope scope(SynchronizationType::Device, device, nullptr);
  Lock lock(engine().mutex);
  // Collected first, because the list may change while the lock is released during a wait.
  std::vector<Fence> fences;
  for (Stream* stream : device.streams) {
    if (!stream->idle()) {
      fences.push_back({stream, stream->submitted.load(std::memory_order_relaxed)});
    }
  }
  for (const Fence& fence : fences) {
    wait_for(fence, lock);
  }
  return device.lost.load();
}

} // namespace musa_emulator
