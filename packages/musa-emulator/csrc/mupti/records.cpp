// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <unistd.h>

#include <string_view>
#include <unordered_map>

#include "delivery.h"

namespace musa_emulator::mupti {
namespace {

uint32_t context_of(int device) { return static_cast<uint32_t>(device) + 1; }

uint8_t memory_kind(musaMemoryType type) {
  switch (type) {
    case musaMemoryTypeUnregistered: return MUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
    case musaMemoryTypeHost: return MUPTI_ACTIVITY_MEMORY_KIND_PINNED;
    case musaMemoryTypeDevice: return MUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    case musaMemoryTypeManaged: return MUPTI_ACTIVITY_MEMORY_KIND_MANAGED;
  }
  return MUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN;
}

bool between_devices(const Activity& activity) {
  return activity.source_device >= 0 && activity.target_device >= 0 && activity.source_device != activity.target_device;
}

uint8_t copy_kind(const Activity& activity) {
  const bool from_device = activity.source_device >= 0;
  const bool to_device = activity.target_device >= 0;
  if (from_device && to_device) {
    return between_devices(activity) ? MUPTI_ACTIVITY_MEMCPY_KIND_PTOP : MUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
  }
  if (from_device) {
    return MUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
  }
  return to_device ? MUPTI_ACTIVITY_MEMCPY_KIND_HTOD : MUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
}

template <class T>
void set_times(T& record, const Activity& activity) {
  record.start = static_cast<uint64_t>(activity.start);
  record.end = static_cast<uint64_t>(activity.end);
}

template <class T>
void set_place(T& record, const Activity& activity) {
  set_times(record, activity);
  record.deviceId = static_cast<uint32_t>(activity.device);
  record.contextId = context_of(activity.device);
  record.streamId = static_cast<uint32_t>(activity.stream);
  record.correlationId = activity.correlation;
}

void make_call(MUpti_ActivityAPI& record, const Activity& activity) {
  record.kind = activity.kind == kDriverCalls ? MUPTI_ACTIVITY_KIND_DRIVER : MUPTI_ACTIVITY_KIND_RUNTIME;
  record.cbid = callback_id(activity.name);
  set_times(record, activity);
  record.processId = static_cast<uint32_t>(getpid());
  record.threadId = activity.thread;
  record.correlationId = activity.correlation;
  record.returnValue = static_cast<uint32_t>(activity.status);
}

void make_kernel(MUpti_ActivityKernel4& record, const Activity& activity, bool concurrent) {
  record.kind = concurrent ? MUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL : MUPTI_ACTIVITY_KIND_KERNEL;
  set_place(record, activity);
  record.registersPerThread = 32;
  record.gridX = static_cast<int32_t>(activity.grid.x);
  record.gridY = static_cast<int32_t>(activity.grid.y);
  record.gridZ = static_cast<int32_t>(activity.grid.z);
  record.blockX = static_cast<int32_t>(activity.block.x);
  record.blockY = static_cast<int32_t>(activity.block.y);
  record.blockZ = static_cast<int32_t>(activity.block.z);
  record.staticSharedMemory = static_cast<int32_t>(activity.static_shared);
  record.dynamicSharedMemory = static_cast<int32_t>(activity.dynamic_shared);
  record.gridId = activity.correlation;
  record.name = activity.name;
}

template <class T>
void make_copy(T& record, const Activity& activity) {
  set_place(record, activity);
  record.copyKind = copy_kind(activity);
  record.srcKind = memory_kind(activity.source);
  record.dstKind = memory_kind(activity.target);
  record.flags = activity.waits ? MUPTI_ACTIVITY_FLAG_NONE : MUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC;
  record.bytes = activity.bytes;
}

MUpti_ActivitySynchronizationType synchronization_type(SynchronizationType type) {
  switch (type) {
    case SynchronizationType::Event: return MUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE;
    case SynchronizationType::StreamWaitEvent: return MUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
    case SynchronizationType::Stream: return MUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
    case SynchronizationType::Device: return MUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
  }
  return MUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN;
}

} // namespace

MUpti_CallbackId callback_id(const char* name) {
  static const auto& ids = *new std::unordered_map<std::string_view, MUpti_CallbackId>{
#include "callback_ids.inc"
  };
  const auto found = ids.find(name);
  return found != ids.end() ? found->second : 0;
}

mupti_buffers::Record make_record(const Activity& activity, bool concurrent_kernels) {
  mupti_buffers::Record record = {};
  switch (activity.kind) {
    case kRuntimeCalls:
    case kDriverCalls: make_call(record.call, activity); break;
    case kKernels: make_kernel(record.kernel, activity, concurrent_kernels); break;
    case kCopies:
      if (between_devices(activity)) {
        record.peer_copy.kind = MUPTI_ACTIVITY_KIND_MEMCPY2;
        make_copy(record.peer_copy, activity);
        record.peer_copy.srcDeviceId = static_cast<uint32_t>(activity.source_device);
        record.peer_copy.srcContextId = context_of(activity.source_device);
        record.peer_copy.dstDeviceId = static_cast<uint32_t>(activity.target_device);
        record.peer_copy.dstContextId = context_of(activity.target_device);
      } else {
        record.copy.kind = MUPTI_ACTIVITY_KIND_MEMCPY;
        make_copy(record.copy, activity);
      }
      break;
    case kFills:
      record.fill.kind = MUPTI_ACTIVITY_KIND_MEMSET;
      set_place(record.fill, activity);
      record.fill.value = activity.value;
      record.fill.bytes = activity.bytes;
      record.fill.flags = MUPTI_ACTIVITY_FLAG_MEMSET_ASYNC;
      record.fill.memoryKind = memory_kind(activity.target);
      break;
    case kSynchronizations:
      record.synchronization.kind = MUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
      record.synchronization.type = synchronization_type(activity.synchronization);
      set_times(record.synchronization, activity);
      record.synchronization.correlationId = activity.correlation;
      record.synchronization.contextId = context_of(activity.device);
      record.synchronization.streamId =
          activity.stream != 0 ? static_cast<uint32_t>(activity.stream) : MUPTI_SYNCHRONIZATION_INVALID_VALUE;
      record.synchronization.musaEventId = MUPTI_SYNCHRONIZATION_INVALID_VALUE;
      break;
    case kExternalCorrelations:
      record.external.kind = MUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
      record.external.externalKind = static_cast<MUpti_ExternalCorrelationKind>(activity.external_kind);
      record.external.externalId = activity.external_id;
      record.external.correlationId = activity.correlation;
      break;
    default: break;
  }
  return record;
}

} // namespace musa_emulator::mupti
