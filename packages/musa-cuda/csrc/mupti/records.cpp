// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "mupti/records.h"

#include "mupti/calls.h"

namespace musa_cuda {
namespace {

static_assert((int)MUPTI_ACTIVITY_KIND_MEMCPY == (int)CUPTI_ACTIVITY_KIND_MEMCPY);
static_assert((int)MUPTI_ACTIVITY_KIND_MEMSET == (int)CUPTI_ACTIVITY_KIND_MEMSET);
static_assert((int)MUPTI_ACTIVITY_KIND_KERNEL == (int)CUPTI_ACTIVITY_KIND_KERNEL);
static_assert((int)MUPTI_ACTIVITY_KIND_DRIVER == (int)CUPTI_ACTIVITY_KIND_DRIVER);
static_assert((int)MUPTI_ACTIVITY_KIND_RUNTIME == (int)CUPTI_ACTIVITY_KIND_RUNTIME);
static_assert((int)MUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL == (int)CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
static_assert((int)MUPTI_ACTIVITY_KIND_OVERHEAD == (int)CUPTI_ACTIVITY_KIND_OVERHEAD);
static_assert((int)MUPTI_ACTIVITY_KIND_MEMCPY2 == (int)CUPTI_ACTIVITY_KIND_MEMCPY2);
static_assert((int)MUPTI_ACTIVITY_KIND_SYNCHRONIZATION == (int)CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
static_assert((int)MUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION == (int)CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
static_assert((int)MUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC == (int)CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC);
static_assert((int)MUPTI_ACTIVITY_FLAG_MEMSET_ASYNC == (int)CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC);
static_assert(
    (int)MUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE ==
    (int)CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE);
static_assert(
    (int)MUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT ==
    (int)CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT);
static_assert(
    (int)MUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE ==
    (int)CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE);
static_assert(
    (int)MUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE ==
    (int)CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
static_assert((int)MUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0 == (int)CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0);
static_assert((int)MUPTI_EXTERNAL_CORRELATION_KIND_SIZE == (int)CUPTI_EXTERNAL_CORRELATION_KIND_SIZE);

constexpr MUpti_ActivityFlag kAsync = MUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC; // of copies and fills, the only flag of the SDK

// The SDK promises this id, and CUPTI counts contexts in the order of their creation.
uint32_t context_of(uint32_t device) { return device + 1; }

// A copy from or to an array has the direction of its memory; the kinds of memory distinguish arrays.
uint8_t copy_kind(uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA: return MUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH: return MUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOA:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOA: return MUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH: return MUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP: return MUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
    default: return MUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN;
  }
}

uint8_t memory_kind(uint16_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE: return MUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED: return MUPTI_ACTIVITY_MEMORY_KIND_PINNED;
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE:
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC: return MUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    case CUPTI_ACTIVITY_MEMORY_KIND_ARRAY: return MUPTI_ACTIVITY_MEMORY_KIND_ARRAY;
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED:
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC: return MUPTI_ACTIVITY_MEMORY_KIND_MANAGED;
    default: return MUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN;
  }
}

template <class From, class To>
Conversion convert_times(const From& from, To& to) {
  to.start = from.start;
  to.end = from.end;
  return from.start != CUPTI_TIMESTAMP_UNKNOWN && from.end != CUPTI_TIMESTAMP_UNKNOWN ? Conversion::Done
                                                                                      : Conversion::Incomplete;
}

// Work on a stream.
template <class From, class To>
Conversion convert_work(const From& from, To& to) {
  to.kind = static_cast<MUpti_ActivityKind>(from.kind);
  to.deviceId = from.deviceId;
  to.contextId = context_of(from.deviceId);
  to.streamId = from.streamId;
  to.correlationId = from.correlationId;
  return convert_times(from, to);
}

template <class From, class To>
Conversion convert_copy(const From& from, To& to) {
  to.copyKind = copy_kind(from.copyKind);
  to.srcKind = memory_kind(from.srcKind);
  to.dstKind = memory_kind(from.dstKind);
  to.flags = from.flags & kAsync;
  to.bytes = from.bytes;
  return convert_work(from, to);
}

Conversion convert_peer_copy(const CUpti_ActivityMemcpyPtoP4& from, MUpti_ActivityMemcpy2& to) {
  to.srcDeviceId = from.srcDeviceId;
  to.srcContextId = context_of(from.srcDeviceId);
  to.dstDeviceId = from.dstDeviceId;
  to.dstContextId = context_of(from.dstDeviceId);
  return convert_copy(from, to);
}

Conversion convert_fill(const CUpti_ActivityMemset4& from, MUpti_ActivityMemset& to) {
  to.value = from.value;
  to.bytes = from.bytes;
  to.flags = from.flags & kAsync;
  to.memoryKind = memory_kind(from.memoryKind);
  return convert_work(from, to);
}

Conversion convert_kernel(const CUpti_ActivityKernel10& from, MUpti_ActivityKernel4& to) {
  to.registersPerThread = from.registersPerThread;
  to.gridX = from.gridX;
  to.gridY = from.gridY;
  to.gridZ = from.gridZ;
  to.blockX = from.blockX;
  to.blockY = from.blockY;
  to.blockZ = from.blockZ;
  to.staticSharedMemory = from.staticSharedMemory;
  to.dynamicSharedMemory = from.dynamicSharedMemory;
  to.localMemoryPerThread = from.localMemoryPerThread;
  to.localMemoryTotal = from.localMemoryTotal;
  to.gridId = from.gridId;
  to.queued = from.queued;
  to.submitted = from.submitted;
  return convert_work(from, to);
}

Conversion convert_call(const CUpti_ActivityAPI& from, MUpti_ActivityAPI& to) {
  const bool driver = from.kind == CUPTI_ACTIVITY_KIND_DRIVER;
  const Call* const call = find_call(driver ? MUPTI_CB_DOMAIN_DRIVER_API : MUPTI_CB_DOMAIN_RUNTIME_API, from.cbid);
  if (call == nullptr) {
    return Conversion::NoEqual;
  }
  to.kind = driver ? MUPTI_ACTIVITY_KIND_DRIVER : MUPTI_ACTIVITY_KIND_RUNTIME;
  to.cbid = call->id;
  to.processId = from.processId;
  to.threadId = from.threadId; // CUPTI's default too is what pthread_self() returns
  to.correlationId = from.correlationId;
  to.returnValue = from.returnValue;
  return convert_times(from, to);
}

Conversion convert_external(const CUpti_ActivityExternalCorrelation& from, MUpti_ActivityExternalCorrelation& to) {
  to.kind = MUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  to.externalKind = static_cast<MUpti_ExternalCorrelationKind>(from.externalKind);
  to.externalId = from.externalId;
  to.correlationId = from.correlationId;
  return Conversion::Done;
}

Conversion convert_overhead(const CUpti_ActivityOverhead3& from, MUpti_ActivityOverhead& to) {
  to.kind = MUPTI_ACTIVITY_KIND_OVERHEAD;
  to.overheadKind = from.overheadKind == CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH
      ? MUPTI_ACTIVITY_OVERHEAD_MUPTI_BUFFER_FLUSH
      : MUPTI_ACTIVITY_OVERHEAD_UNKNOWN;
  if (from.objectKind == CUPTI_ACTIVITY_OBJECT_PROCESS || from.objectKind == CUPTI_ACTIVITY_OBJECT_THREAD) {
    to.processId = from.objectId.pt.processId;
    to.threadId = from.objectKind == CUPTI_ACTIVITY_OBJECT_THREAD ? from.objectId.pt.threadId : 0;
  }
  return convert_times(from, to);
}

template <class T>
const T& as_record(const CUpti_Activity& record) {
  return reinterpret_cast<const T&>(record);
}

} // namespace

Conversion RecordConverter::convert(const CUpti_Activity& from, mupti_buffers::Record& to) {
  to = {};
  switch (from.kind) {
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: return convert_call(as_record<CUpti_ActivityAPI>(from), to.call);
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& kernel = as_record<CUpti_ActivityKernel10>(from);
      to.kernel.name = lasting(kernel.name);
      return convert_kernel(kernel, to.kernel);
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: return convert_copy(as_record<CUpti_ActivityMemcpy6>(from), to.copy);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return convert_peer_copy(as_record<CUpti_ActivityMemcpyPtoP4>(from), to.peer_copy);
    case CUPTI_ACTIVITY_KIND_MEMSET: return convert_fill(as_record<CUpti_ActivityMemset4>(from), to.fill);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
      const auto& wait = as_record<CUpti_ActivitySynchronization2>(from);
      convert_synchronization(wait, to.synchronization);
      return convert_times(wait, to.synchronization);
    }
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return convert_external(as_record<CUpti_ActivityExternalCorrelation>(from), to.external);
    case CUPTI_ACTIVITY_KIND_OVERHEAD: return convert_overhead(as_record<CUpti_ActivityOverhead3>(from), to.overhead);
    case CUPTI_ACTIVITY_KIND_CONTEXT: {
      const auto& context = as_record<CUpti_ActivityContext3>(from);
      const uint32_t id = context.contextId;
      devices_[id] = context.deviceId;
      return Conversion::NoEqual;
    }
    default: return Conversion::NoEqual;
  }
}

void RecordConverter::convert_synchronization(
    const CUpti_ActivitySynchronization2& from, MUpti_ActivitySynchronization& to) const {
  to.kind = MUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  to.type = static_cast<MUpti_ActivitySynchronizationType>(from.type);
  to.correlationId = from.correlationId;
  const uint32_t context = from.contextId;
  const auto device = devices_.find(context);
  to.contextId = device != devices_.end() ? context_of(device->second) : 0;
  // CUPTI has no stream of the other waits.
  const bool of_stream = from.type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT ||
      from.type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
  to.streamId = of_stream ? from.streamId : MUPTI_SYNCHRONIZATION_INVALID_VALUE;
  to.musaEventId = MUPTI_SYNCHRONIZATION_INVALID_VALUE;
}

const char* RecordConverter::lasting(const char* name) {
  return names_.insert(name != nullptr ? name : "").first->c_str();
}

} // namespace musa_cuda
