// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Activity records. CUPTI fills buffers that are allocated here; when it hands one back, the records are converted and copied
// into the client's buffers.
//
// CUPTI has one pair of buffer callbacks and one clock in a process. muptiActivityRegisterCallbacks takes both, as torch's own
// profiler does when it starts: the last one to register receives the records.
#include "mupti/calls.h"
#include "mupti/records.h"

#include <cstdlib>
#include <ctime>
#include <mutex>
#include <set>

namespace musa_cuda {
namespace {

constexpr size_t kBufferBytes = 1 << 20; // CUPTI recommends 1 to 10 MB

// CUPTI's callbacks take the first three locks, so no function of CUPTI that waits for them is called under these.
struct State {
  std::mutex delivery_mutex; // one buffer at a time; guards converter; the client's callbacks are called under it
  RecordConverter converter;

  std::mutex client_mutex; // guards the next three
  MUpti_BuffersCallbackRequestFunc request = nullptr;
  MUpti_BuffersCallbackCompleteFunc complete = nullptr;
  size_t dropped = 0; // records without a buffer of the client, or without times

  std::mutex buffers_mutex; // guards buffers
  std::set<uint8_t*> buffers; // that were given to CUPTI

  std::mutex kinds_mutex; // guards enabled; CUPTI is called under it
  std::set<MUpti_ActivityKind> enabled;
};

// Never destroyed: CUPTI's thread may hand a buffer back while the process ends.
State& state() {
  static State& instance = *new State;
  return instance;
}

thread_local bool delivering = false;

void CUPTIAPI request_buffer(uint8_t** buffer, size_t* size, size_t* most_records) {
  *most_records = 0;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(alignof(uint64_t), kBufferBytes));
  *size = *buffer != nullptr ? kBufferBytes : 0;
  if (*buffer != nullptr) {
    const std::lock_guard lock(state().buffers_mutex);
    state().buffers.insert(*buffer);
  }
}

void deliver(uint8_t* buffer, size_t valid_bytes) {
  MUpti_BuffersCallbackRequestFunc request = nullptr;
  MUpti_BuffersCallbackCompleteFunc complete = nullptr;
  {
    const std::lock_guard lock(state().client_mutex);
    request = state().request;
    complete = state().complete;
  }
  if (request == nullptr) {
    return;
  }
  size_t dropped = 0;
  mupti_buffers::ClientBuffer client(request, complete);
  CUpti_Activity* from = nullptr;
  mupti_buffers::Record to;
  while (cuptiActivityGetNextRecord(buffer, valid_bytes, &from) == CUPTI_SUCCESS) {
    const Conversion result = state().converter.convert(*from, to);
    const bool delivered = result == Conversion::Done && client.append(&to, mupti_buffers::record_size(to.head.kind));
    dropped += result != Conversion::NoEqual && !delivered;
  }
  client.hand_back();
  const std::lock_guard lock(state().client_mutex);
  state().dropped += dropped;
}

void CUPTIAPI complete_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  {
    const std::lock_guard lock(state().delivery_mutex);
    delivering = true;
    deliver(buffer, valid_bytes);
    delivering = false;
  }
  const std::lock_guard lock(state().buffers_mutex);
  // A buffer that another client of CUPTI gave it before is not freed: that client still counts it among its own.
  if (state().buffers.erase(buffer) != 0) {
    std::free(buffer);
  }
}

// torch's own profiler sets a clock that counts the processor's cycles.
uint64_t CUPTIAPI epoch_clock() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

bool is_registered() {
  const std::lock_guard lock(state().client_mutex);
  return state().request != nullptr;
}

// With kinds_mutex held. Waits have no device but a context; records of contexts have its device.
MUptiResult enable(MUpti_ActivityKind kind) {
  if (kind == MUPTI_ACTIVITY_KIND_SYNCHRONIZATION) {
    const MUptiResult result = status(cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_CONTEXT));
    if (result != MUPTI_SUCCESS) {
      return result;
    }
  }
  return status(cuptiActivityEnable(static_cast<CUpti_ActivityKind>(kind)));
}

MUptiResult disable(MUpti_ActivityKind kind) {
  if (kind == MUPTI_ACTIVITY_KIND_SYNCHRONIZATION) {
    cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONTEXT);
  }
  return status(cuptiActivityDisable(static_cast<CUpti_ActivityKind>(kind)));
}

} // namespace
} // namespace musa_cuda

namespace musa_cuda::by_hand {

MUptiResult muptiActivityRegisterCallbacks(
    MUpti_BuffersCallbackRequestFunc request, MUpti_BuffersCallbackCompleteFunc complete) {
  if (request == nullptr || complete == nullptr) {
    return MUPTI_ERROR_INVALID_PARAMETER;
  }
  // Buffers in use go back to the client of CUPTI that gave them. An error says that there is none.
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  MUptiResult result = status(cuptiActivityRegisterTimestampCallback(epoch_clock));
  if (result == MUPTI_SUCCESS) {
    result = status(cuptiActivityRegisterCallbacks(request_buffer, complete_buffer));
  }
  if (result == MUPTI_SUCCESS) {
    const std::lock_guard lock(state().client_mutex);
    state().request = request;
    state().complete = complete;
  }
  return result;
}

MUptiResult muptiActivityEnable(MUpti_ActivityKind kind) {
  if (mupti_buffers::record_size(kind) == 0) {
    return MUPTI_ERROR_INVALID_KIND;
  }
  const std::lock_guard lock(state().kinds_mutex);
  if (mupti_buffers::conflicts_with_kernels(kind, state().enabled)) {
    return MUPTI_ERROR_NOT_COMPATIBLE;
  }
  const MUptiResult result = enable(kind);
  if (result == MUPTI_SUCCESS) {
    state().enabled.insert(kind);
  }
  return result;
}

MUptiResult muptiActivityDisable(MUpti_ActivityKind kind) {
  if (mupti_buffers::record_size(kind) == 0) {
    return MUPTI_ERROR_INVALID_KIND;
  }
  const std::lock_guard lock(state().kinds_mutex);
  state().enabled.erase(kind);
  return disable(kind);
}

MUptiResult muptiActivityFlushAll(uint32_t flag) {
  static_assert((int)MUPTI_ACTIVITY_FLAG_FLUSH_FORCED == (int)CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  if ((flag & ~uint32_t{MUPTI_ACTIVITY_FLAG_FLUSH_FORCED}) != 0) {
    return MUPTI_ERROR_INVALID_PARAMETER;
  }
  return delivering || !is_registered() ? MUPTI_ERROR_INVALID_OPERATION : status(cuptiActivityFlushAll(flag));
}

MUptiResult muptiActivityGetNextRecord(uint8_t* buffer, size_t validSize, MUpti_Activity** record) {
  return mupti_buffers::next_record(buffer, validSize, record);
}

MUptiResult muptiActivityGetNumDroppedRecords(MUcontext, uint32_t, size_t* dropped) {
  if (dropped == nullptr) {
    return MUPTI_ERROR_INVALID_PARAMETER;
  }
  size_t of_cupti = 0;
  const MUptiResult result = status(cuptiActivityGetNumDroppedRecords(nullptr, 0, &of_cupti));
  const std::lock_guard lock(state().client_mutex);
  *dropped = state().dropped + of_cupti;
  state().dropped = 0;
  return result;
}

// Without cuptiFinalize, which would end the collection of every other client in the process.
MUptiResult muptiFinalize() {
  if (delivering) {
    return MUPTI_ERROR_INVALID_OPERATION;
  }
  {
    const std::lock_guard lock(state().kinds_mutex);
    for (const MUpti_ActivityKind kind : state().enabled) {
      disable(kind);
    }
    state().enabled.clear();
  }
  const bool registered = is_registered();
  {
    const std::lock_guard lock(state().client_mutex);
    state().request = nullptr;
    state().complete = nullptr;
    state().dropped = 0;
  }
  return registered ? status(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED)) : MUPTI_SUCCESS;
}

} // namespace musa_cuda::by_hand
