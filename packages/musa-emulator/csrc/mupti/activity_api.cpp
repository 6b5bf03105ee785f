// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <pthread.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <set>

#include "activity_buffers.h"
#include "delivery.h"
#include "engine/device.h"
#include "engine/lifecycle.h"
#include "mupti.h"

using namespace musa_emulator;
using mupti_buffers::record_size;

namespace {

struct State {
  std::mutex mutex; // guards the fields below; callbacks are called without it
  MUpti_BuffersCallbackRequestFunc request = nullptr;
  MUpti_BuffersCallbackCompleteFunc complete = nullptr;
  std::set<MUpti_ActivityKind> enabled;
  size_t dropped = 0; // because no buffer was available
};

State& state() {
  static State* instance = new State;
  return *instance;
}

// Serializes deliveries, so that records keep their order in the buffers.
std::mutex& delivery_mutex() {
  static std::mutex* instance = new std::mutex;
  return *instance;
}
thread_local bool delivering = false;

// The activity kinds of the engine that a record kind needs.
uint32_t engine_kind(MUpti_ActivityKind kind) {
  switch (kind) {
    case MUPTI_ACTIVITY_KIND_RUNTIME: return kRuntimeCalls;
    case MUPTI_ACTIVITY_KIND_DRIVER: return kDriverCalls;
    case MUPTI_ACTIVITY_KIND_KERNEL:
    case MUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return kKernels;
    case MUPTI_ACTIVITY_KIND_MEMCPY:
    case MUPTI_ACTIVITY_KIND_MEMCPY2: return kCopies;
    case MUPTI_ACTIVITY_KIND_MEMSET: return kFills;
    case MUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return kSynchronizations;
    case MUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: return kExternalCorrelations;
    default: return 0; // these records are made in this file
  }
}

// The lock must be held. Keeps the observer of calls, which the callback interface sets.
void apply(const State& current) {
  uint32_t kinds = traced_kinds.load() & kCallObserver;
  for (const MUpti_ActivityKind kind : current.enabled) {
    kinds |= engine_kind(kind);
  }
  set_traced_kinds(kinds);
}

bool valid_external_kind(MUpti_ExternalCorrelationKind kind) {
  return kind > MUPTI_EXTERNAL_CORRELATION_KIND_INVALID && kind < MUPTI_EXTERNAL_CORRELATION_KIND_SIZE;
}

} // namespace

namespace musa_emulator::mupti {

void deliver() {
  if (delivering) {
    return;
  }
  std::lock_guard one_at_a_time(delivery_mutex());
  delivering = true;
  const int64_t start = activity_clock();
  MUpti_BuffersCallbackRequestFunc request = nullptr;
  MUpti_BuffersCallbackCompleteFunc complete = nullptr;
  std::set<MUpti_ActivityKind> enabled;
  {
    std::lock_guard lock(state().mutex);
    request = state().request;
    complete = state().complete;
    enabled = state().enabled;
  }
  if (request != nullptr) {
    mupti_buffers::ClientBuffer buffer(request, complete);
    size_t dropped = take_dropped();
    const bool concurrent = enabled.count(MUPTI_ACTIVITY_KIND_KERNEL) == 0;
    for (const Activity& activity : take_activities()) {
      const mupti_buffers::Record record = make_record(activity, concurrent);
      // Both copy kinds use one kind of the engine, so records of the other are skipped, unless both were disabled since.
      if (activity.kind == kCopies && enabled.count(record.head.kind) == 0 &&
          (enabled.count(MUPTI_ACTIVITY_KIND_MEMCPY) != 0 || enabled.count(MUPTI_ACTIVITY_KIND_MEMCPY2) != 0)) {
        continue;
      }
      dropped += buffer.append(&record, record_size(record.head.kind)) ? 0 : 1;
    }
    if (enabled.count(MUPTI_ACTIVITY_KIND_OVERHEAD) != 0) {
      MUpti_ActivityOverhead overhead = {};
      overhead.kind = MUPTI_ACTIVITY_KIND_OVERHEAD;
      overhead.overheadKind = MUPTI_ACTIVITY_OVERHEAD_MUPTI_BUFFER_FLUSH;
      overhead.start = static_cast<uint64_t>(start);
      overhead.end = static_cast<uint64_t>(activity_clock());
      overhead.processId = static_cast<uint32_t>(getpid());
      overhead.threadId = static_cast<uint32_t>(pthread_self());
      dropped += buffer.append(&overhead, sizeof overhead) ? 0 : 1;
    }
    buffer.hand_back();
    std::lock_guard lock(state().mutex);
    state().dropped += dropped;
  }
  delivering = false;
}

} // namespace musa_emulator::mupti

MUptiResult muptiGetResultString(MUptiResult result, const char** text) {
  return mupti_buffers::result_string(result, text);
}

MUptiResult muptiGetVersion(uint32_t* version) { return mupti_buffers::api_version(version); }

MUptiResult muptiActivityRegisterCallbacks(
    MUpti_BuffersCallbackRequestFunc request, MUpti_BuffersCallbackCompleteFunc complete) {
  if (request == nullptr || complete == nullptr) {
    return MUPTI_ERROR_INVALID_PARAMETER;
  }
  std::lock_guard lock(state().mutex);
  state().request = request;
  state().complete = complete;
  set_backlog_handler(mupti::deliver);
  return MUPTI_SUCCESS;
}

MUptiResult muptiActivityEnable(MUpti_ActivityKind kind) {
  if (record_size(kind) == 0) {
    return MUPTI_ERROR_INVALID_KIND;
  }
  std::lock_guard lock(state().mutex);
  if (mupti_buffers::conflicts_with_kernels(kind, state().enabled)) {
    return MUPTI_ERROR_NOT_COMPATIBLE;
  }
  state().enabled.insert(kind);
  apply(state());
  return MUPTI_SUCCESS;
}

MUptiResult muptiActivityDisable(MUpti_ActivityKind kind) {
  if (record_size(kind) == 0) {
    return MUPTI_ERROR_INVALID_KIND;
  }
  std::lock_guard lock(state().mutex);
  state().enabled.erase(kind);
  apply(state());
  return MUPTI_SUCCESS;
}

MUptiResult muptiActivityFlushAll(uint32_t flag) {
  if ((flag & ~uint32_t{MUPTI_ACTIVITY_FLAG_FLUSH_FORCED}) != 0) {
    return MUPTI_ERROR_INVALID_PARAMETER;
  }
  if (delivering) {
    return MUPTI_ERROR_INVALID_OPERATION;
  }
  {
    std::lock_guard lock(state().mutex);
    if (state().request == nullptr) {
      return MUPTI_ERROR_INVALID_OPERATION;
    }
  }
  const UntracedScope scope;
  mupti::deliver();
  return MUPTI_SUCCESS;
}

MUptiResult muptiActivityGetNextRecord(uint8_t* buffer, size_t validSize, MUpti_Activity** record) {
  return mupti_buffers::next_record(buffer, validSize, record);
}

MUptiResult muptiActivityGetNumDroppedRecords(MUcontext, uint32_t, size_t* dropped) {
  if (dropped == nullptr) {
    return MUPTI_ERROR_INVALID_PARAMETER;
  }
  const size_t unread = take_dropped();
  std::lock_guard lock(state().mutex);
  *dropped = state().dropped + unread;
  state().dropped = 0;
  return MUPTI_SUCCESS;
}

MUptiResult muptiActivityPushExternalCorrelationId(MUpti_ExternalCorrelationKind kind, uint64_t id) {
  if (!valid_external_kind(kind)) {
    return MUPTI_ERROR_INVALID_PARAMETER;
  }
  push_external(kind, id);
  return MUPTI_SUCCESS;
}

MUptiResult muptiActivityPopExternalCorrelationId(MUpti_ExternalCorrelationKind kind, uint64_t* lastId) {
  if (!valid_external_kind(kind)) {
    return MUPTI_ERROR_INVALID_PARAMETER;
  }
  return pop_external(kind, lastId) ? MUPTI_SUCCESS : MUPTI_ERROR_QUEUE_EMPTY;
}

MUptiResult muptiActivitySetAttribute(MUpti_ActivityAttribute attribute, size_t* valueSize, void* value) {
  if (valueSize == nullptr || value == nullptr || *valueSize != sizeof(size_t)) {
    return MUPTI_ERROR_INVALID_PARAMETER;
  }
  size_t number = 0;
  std::memcpy(&number, value, sizeof number);
  switch (attribute) {
    // These attributes set GPU buffer sizes and have no effect here, because records are stored on the host. As in
    // CUPTI, 0 is invalid.
    case MUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE:
    case MUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT:
      return number != 0 ? MUPTI_SUCCESS : MUPTI_ERROR_INVALID_PARAMETER;
    default: return MUPTI_ERROR_INVALID_PARAMETER;
  }
}

MUptiResult muptiGetDeviceId(MUcontext context, uint32_t* deviceId) {
  if (deviceId == nullptr) {
    return MUPTI_ERROR_INVALID_PARAMETER;
  }
  if (!ensure_initialized()) {
    return MUPTI_ERROR_NOT_INITIALIZED;
  }
  const UntracedScope scope;
  const int before = thread_state().device; // restored: the query must not change the current device
  MUdevice device = before;
  if (context != nullptr) {
    const bool known = muCtxSetCurrent(context) == MUSA_SUCCESS && muCtxGetDevice(&device) == MUSA_SUCCESS;
    thread_state().device = before;
    if (!known) {
      return MUPTI_ERROR_INVALID_CONTEXT;
    }
  }
  if (find_device(device) == nullptr) {
    return MUPTI_ERROR_INVALID_DEVICE;
  }
  *deviceId = static_cast<uint32_t>(device);
  return MUPTI_SUCCESS;
}

MUptiResult muptiFinalize(void) {
  if (delivering) {
    return MUPTI_ERROR_INVALID_OPERATION;
  }
  std::lock_guard one_at_a_time(delivery_mutex());
  set_backlog_handler(nullptr);
  set_call_observer(nullptr);
  set_traced_kinds(0);
  take_activities();
  std::lock_guard lock(state().mutex);
  state().enabled.clear();
  state().request = nullptr;
  state().complete = nullptr;
  state().dropped = take_dropped();
  return MUPTI_SUCCESS;
}
