// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSAStream.h>

#include <c10/musa/MUSACaptures.h>
#include <c10/musa/MUSADeferredError.h>
#include <c10/musa/MUSAKernelGuard.h>
#include <c10/musa/MUSAStreamPool.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>

namespace c10::musa {
namespace {

constexpr int kStreamsPerPriority = 32;
constexpr int kMaxPriorities = 4;

struct PoolStream {
  std::once_flag once;
  std::atomic<musaStream_t> handle{nullptr}; // set once
};

// Streams are created one by one at first use, so a process with only the default stream creates none.
struct DevicePool {
  std::array<std::array<PoolStream, kStreamsPerPriority>, kMaxPriorities> streams;
  std::array<std::atomic<uint32_t>, kMaxPriorities> next{};
  std::atomic<bool> side_streams{false}; // of the pool, or the program's own
};

DevicePool& device_pool(DeviceIndex device) {
  // Leaked: handles must outlive static destructors of other libraries that still synchronize on them.
  static auto& pools = *new std::array<DevicePool, C10_COMPILE_TIME_MAX_MUSA_DEVICES>();
  return pools[device];
}

struct PriorityRange {
  int least = 0;
  int greatest = 0;
  PriorityRange() {
    C10_MUSA_CHECK(musaDeviceGetStreamPriorityRange(&least, &greatest));
    greatest = std::max(greatest, least - (kMaxPriorities - 1));
  }
};

const PriorityRange& priorities() {
  static const PriorityRange range;
  return range;
}

// Odd ids: bit 0 is 1, bits 1..3 are the priority row, the rest is the index in the row.
StreamId pool_id(int row, int index) {
  return (static_cast<StreamId>(index) << 4) | (static_cast<StreamId>(row) << 1) | 1;
}

bool is_pool_id(StreamId id) { return (id & 1) != 0; }

// The current stream of each device for this thread; id 0 is the default stream, on which a new thread starts.
thread_local std::array<StreamId, C10_COMPILE_TIME_MAX_MUSA_DEVICES> current_ids{};

// Whether any thread ever chose a stream other than the default one. Until then no thread-local variable is read for the
// current stream, which every allocation and every kernel needs.
std::atomic<bool> streams_are_chosen{false};

StreamId current_id(DeviceIndex device) {
  return C10_LIKELY(!streams_are_chosen.load(std::memory_order_relaxed)) ? 0 : current_ids[device];
}

MUSAStream make_stream(StreamId id, DeviceIndex device) {
  return MUSAStream(MUSAStream::UNCHECKED, Stream(Stream::UNSAFE, Device(DeviceType::PrivateUse1, device), id));
}

} // namespace

musaStream_t MUSAStream::stream() const {
  const StreamId id = stream_.id();
  if (!is_pool_id(id)) {
    return reinterpret_cast<musaStream_t>(id);
  }
  const int row = static_cast<int>((id >> 1) & 7);
  const StreamId index = id >> 4;
  TORCH_CHECK(
      row < kMaxPriorities && index >= 0 && index < kStreamsPerPriority, "Stream id ", id, " names no musa stream.");
  check_device_index(device_index());
  PoolStream& slot = device_pool(device_index()).streams[row][index];
  std::call_once(slot.once, [&] {
    const MUSAKernelGuard guard(device_index());
    musaStream_t created = nullptr;
    C10_MUSA_CHECK(musaStreamCreateWithPriority(&created, musaStreamNonBlocking, priorities().least - row));
    slot.handle.store(created, std::memory_order_release);
    device_pool(device_index()).side_streams.store(true);
  });
  return slot.handle.load(std::memory_order_acquire);
}

bool is_own_stream(musaStream_t stream, DeviceIndex device) noexcept {
  if (stream == nullptr) {
    return true;
  }
  for (const auto& row : device_pool(device).streams) {
    for (const PoolStream& slot : row) {
      if (slot.handle.load(std::memory_order_acquire) == stream) {
        return true;
      }
    }
  }
  return false;
}

bool MUSAStream::query() const {
  const MUSAKernelGuard guard(device_index());
  const musaError_t error = musaStreamQuery(stream());
  if (error == musaErrorNotReady) {
    (void)musaGetLastError();
    return false;
  }
  if (C10_UNLIKELY(error != musaSuccess)) {
    throw_musa_error(error, "musaStreamQuery(stream)", __func__, __FILE__, __LINE__);
  }
  return true;
}

void MUSAStream::synchronize() const {
  const MUSAKernelGuard guard(device_index());
  stream_synchronize(stream());
  check_deferred_error();
}

void wait_for_host_access(musaStream_t stream) {
  // This query must not invalidate another thread's capture: a kernel launch on a device makes no query either. The guard does
  // not depend on a capture in progress, because one could begin before the query.
  const MUSAStreamCaptureModeGuard relaxed;
  const musaError_t error = musaStreamQuery(stream);
  if (C10_UNLIKELY(error != musaSuccess)) {
    (void)musaGetLastError();
    if (error != musaErrorNotReady) {
      throw_musa_error(error, "musaStreamQuery(current stream)", __func__, __FILE__, __LINE__);
    }
    C10_MUSA_CHECK(musaStreamSynchronize(stream));
  }
}

int MUSAStream::priority() const {
  if (id() == 0) {
    return 0;
  }
  const MUSAKernelGuard guard(device_index());
  int priority = 0;
  C10_MUSA_CHECK(musaStreamGetPriority(stream(), &priority));
  return priority;
}

std::tuple<int, int> MUSAStream::priority_range() { return {priorities().least, priorities().greatest}; }

MUSAStream getDefaultMUSAStream(DeviceIndex device) {
  const DeviceIndex index = resolve_device_index(device);
  check_device_index(index);
  return make_stream(0, index);
}

MUSAStream getCurrentMUSAStream(DeviceIndex device) {
  const DeviceIndex index = resolve_device_index(device);
  check_device_index(index);
  return make_stream(current_id(index), index);
}

musaStream_t current_stream_handle(DeviceIndex device) {
  const StreamId id = current_id(device);
  return C10_LIKELY(id == 0) ? nullptr : make_stream(id, device).stream();
}

void setCurrentMUSAStream(MUSAStream stream) {
  check_device_index(stream.device_index());
  if (stream.id() != 0) {
    streams_are_chosen.store(true, std::memory_order_relaxed); // visible to this thread; others have chosen no stream
  }
  current_ids[stream.device_index()] = stream.id();
}

MUSAStream getStreamFromPool(int priority, DeviceIndex device) {
  const DeviceIndex index = resolve_device_index(device);
  check_device_index(index);
  // Out-of-range priorities are clamped, as in the SDK.
  const PriorityRange& range = priorities();
  const int row = range.least - std::clamp(priority, range.greatest, range.least);
  const uint32_t turn = device_pool(index).next[row].fetch_add(1, std::memory_order_relaxed);
  return make_stream(pool_id(row, static_cast<int>(turn % kStreamsPerPriority)), index);
}

MUSAStream getStreamFromPool(bool is_high_priority, DeviceIndex device) {
  return getStreamFromPool(is_high_priority ? priorities().greatest : 0, device);
}

bool side_streams_exist(DeviceIndex device) { return device_pool(device).side_streams.load(); }

MUSAStream getStreamFromExternal(musaStream_t stream, DeviceIndex device) {
  const DeviceIndex index = resolve_device_index(device);
  check_device_index(index);
  const auto id = static_cast<StreamId>(reinterpret_cast<intptr_t>(stream));
  TORCH_CHECK(
      !is_pool_id(id), "The stream handle ", id,
      " is not one of the SDK's: handles are at least 2-byte aligned. Pass the value of a musaStream_t.");
  if (id != 0) {
    device_pool(index).side_streams.store(true);
  }
  return make_stream(id, index);
}

std::ostream& operator<<(std::ostream& out, const MUSAStream& stream) { return out << stream.unwrap(); }

} // namespace c10::musa
