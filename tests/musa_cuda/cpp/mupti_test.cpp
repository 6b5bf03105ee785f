// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Tests libmupti of musa-cuda over a fake CUPTI. This program defines the fake's functions, and the dynamic loader
// resolves them before those of libcupti. The argument names the case; the program prints each failed check.
#include <cupti.h>
#include <mupti.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <set>
#include <string>
#include <vector>

// ---- the fake CUPTI -------------------------------------------------------------------------------------------------------
namespace {

CUpti_BuffersCallbackRequestFunc request_of_cupti = nullptr;
CUpti_BuffersCallbackCompleteFunc complete_of_cupti = nullptr;
CUpti_TimestampCallbackFunc clock_of_cupti = nullptr;
std::set<int> enabled_kinds;
std::set<int> dumped_kinds;
int flushes = 0;
CUptiResult next_result = CUPTI_SUCCESS; // the result of some of the functions below
CUpti_CallbackFunc subscribed = nullptr;
std::set<std::pair<int, uint32_t>> enabled_callbacks;

size_t size_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_OVERHEAD: return sizeof(CUpti_ActivityOverhead3);
    case CUPTI_ACTIVITY_KIND_CONTEXT: return sizeof(CUpti_ActivityContext3);
    case CUPTI_ACTIVITY_KIND_MARKER: return sizeof(CUpti_ActivityMarker2);
    default: std::abort();
  }
}

} // namespace

extern "C" {
CUptiResult cuptiActivityRegisterCallbacks(
    CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete) {
  request_of_cupti = request;
  complete_of_cupti = complete;
  return next_result;
}
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc clock) {
  clock_of_cupti = clock;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  enabled_kinds.insert(kind);
  return next_result;
}
CUptiResult cuptiActivityEnableAndDump(CUpti_ActivityKind kind) {
  enabled_kinds.insert(kind);
  dumped_kinds.insert(kind);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  enabled_kinds.erase(kind);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlushAll(uint32_t) {
  ++flushes;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  uint8_t* const next = *record == nullptr ? buffer : reinterpret_cast<uint8_t*>(*record) + size_of((*record)->kind);
  if (next >= buffer + valid) {
    return CUPTI_ERROR_MAX_LIMIT_REACHED;
  }
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  *dropped = 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind, uint64_t) { return next_result; }
CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
  *text = "A_CODE_OF_CUPTI";
  return CUPTI_SUCCESS;
}
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback, void*) {
  *handle = reinterpret_cast<CUpti_SubscriberHandle>(&subscribed);
  subscribed = callback;
  return next_result;
}
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle) {
  subscribed = nullptr;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiEnableCallback(
    uint32_t enable, CUpti_SubscriberHandle, CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  enable != 0 ? (void)enabled_callbacks.insert({domain, id}) : (void)enabled_callbacks.erase({domain, id});
  return CUPTI_SUCCESS;
}
CUptiResult cuptiEnableDomain(uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain) { return next_result; }
}

// ---- the client -----------------------------------------------------------------------------------------------------------
namespace {

int failures = 0;
#define CHECK(condition) \
  do { \
    if (!(condition)) { \
      std::printf("line %d: %s is false\n", __LINE__, #condition); \
      ++failures; \
    } \
  } while (false)
#define EQUAL(expected, found) CHECK((expected) == (found))

size_t client_bytes = 1 << 16;
size_t client_most = 0;
int requested = 0;
int completed = 0;
MUptiResult flush_in_callback = MUPTI_SUCCESS;
std::vector<std::vector<uint8_t>> received;

void request(uint8_t** buffer, size_t* size, size_t* most) {
  *most = client_most;
  *size = client_bytes;
  *buffer = client_bytes != 0 ? static_cast<uint8_t*>(std::aligned_alloc(8, (client_bytes + 7) / 8 * 8)) : nullptr;
  requested += *buffer != nullptr;
}
void complete(MUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  ++completed;
  flush_in_callback = muptiActivityFlushAll(0);
  received.emplace_back(buffer, buffer + valid);
  std::free(buffer);
}

// Returns all received records of a kind.
template <class T>
std::vector<T> records(MUpti_ActivityKind kind) {
  std::vector<T> found;
  for (std::vector<uint8_t>& buffer : received) {
    MUpti_Activity* record = nullptr;
    while (muptiActivityGetNextRecord(buffer.data(), buffer.size(), &record) == MUPTI_SUCCESS) {
      if (record->kind == kind) {
        found.push_back(reinterpret_cast<T&>(*record));
      }
    }
  }
  return found;
}

class CuptiBuffer {
 public:
  CuptiBuffer() {
    size_t most = 0;
    request_of_cupti(&data_, &size_, &most);
  }
  template <class T>
  CuptiBuffer& add(const T& record) {
    std::memcpy(data_ + used_, &record, sizeof record);
    used_ += sizeof record;
    return *this;
  }
  void complete() { complete_of_cupti(nullptr, 0, data_, size_, used_); }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
  size_t used_ = 0;
};

template <class T>
T record_of(CUpti_ActivityKind kind) {
  T record{};
  record.kind = kind;
  return record;
}
template <class T>
T timed(CUpti_ActivityKind kind) {
  T record = record_of<T>(kind);
  record.start = 1000;
  record.end = 1500;
  record.correlationId = 17;
  return record;
}
CUpti_ActivityAPI call(CUpti_ActivityKind kind, uint32_t id) {
  auto record = timed<CUpti_ActivityAPI>(kind);
  record.cbid = id;
  return record;
}

void start() { EQUAL(MUPTI_SUCCESS, muptiActivityRegisterCallbacks(request, complete)); }

void kernels() {
  auto kernel = timed<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  kernel.registersPerThread = 40;
  kernel.deviceId = 2;
  kernel.contextId = 9;
  kernel.streamId = 7;
  kernel.gridX = 1, kernel.gridY = 2, kernel.gridZ = 3;
  kernel.blockX = 4, kernel.blockY = 5, kernel.blockZ = 6;
  kernel.staticSharedMemory = 100;
  kernel.dynamicSharedMemory = 200;
  kernel.localMemoryPerThread = 8;
  kernel.gridId = 5;
  char name[] = "add";
  kernel.name = name;
  CuptiBuffer().add(kernel).complete();
  name[0] = 'x'; // the record's name is a copy
  const auto found = records<MUpti_ActivityKernel4>(MUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  EQUAL(1u, found.size());
  const auto& to = found.at(0);
  EQUAL(40, to.registersPerThread);
  EQUAL(1000u, to.start);
  EQUAL(1500u, to.end);
  EQUAL(2u, to.deviceId);
  EQUAL(3u, to.contextId); // the device's index + 1
  EQUAL(7u, to.streamId);
  EQUAL(17u, to.correlationId);
  CHECK(to.gridX == 1 && to.gridY == 2 && to.gridZ == 3);
  CHECK(to.blockX == 4 && to.blockY == 5 && to.blockZ == 6);
  EQUAL(100, to.staticSharedMemory);
  EQUAL(200, to.dynamicSharedMemory);
  EQUAL(8u, to.localMemoryPerThread);
  EQUAL(5, to.gridId);
  EQUAL(std::string("add"), to.name);
}

void copies() {
  const std::map<int, int> kinds{
      {CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, MUPTI_ACTIVITY_MEMCPY_KIND_HTOD},
      {CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, MUPTI_ACTIVITY_MEMCPY_KIND_DTOH},
      {CUPTI_ACTIVITY_MEMCPY_KIND_HTOA, MUPTI_ACTIVITY_MEMCPY_KIND_HTOD},
      {CUPTI_ACTIVITY_MEMCPY_KIND_ATOH, MUPTI_ACTIVITY_MEMCPY_KIND_DTOH},
      {CUPTI_ACTIVITY_MEMCPY_KIND_ATOA, MUPTI_ACTIVITY_MEMCPY_KIND_DTOD},
      {CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, MUPTI_ACTIVITY_MEMCPY_KIND_DTOD},
      {CUPTI_ACTIVITY_MEMCPY_KIND_HTOH, MUPTI_ACTIVITY_MEMCPY_KIND_HTOH},
      {99, MUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN}};
  for (const auto& [from, to] : kinds) {
    received.clear();
    auto copy = timed<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
    copy.copyKind = static_cast<uint8_t>(from);
    copy.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
    copy.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC;
    copy.flags = CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC | 4;
    copy.bytes = 4096;
    copy.deviceId = 1;
    CuptiBuffer().add(copy).complete();
    const auto found = records<MUpti_ActivityMemcpy>(MUPTI_ACTIVITY_KIND_MEMCPY).at(0);
    EQUAL(to, found.copyKind);
    EQUAL(MUPTI_ACTIVITY_MEMORY_KIND_PINNED, found.srcKind);
    EQUAL(MUPTI_ACTIVITY_MEMORY_KIND_DEVICE, found.dstKind);
    EQUAL(MUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC, found.flags);
    EQUAL(4096u, found.bytes);
    EQUAL(2u, found.contextId);
  }
  auto peer = timed<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2);
  peer.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  peer.srcDeviceId = 0;
  peer.dstDeviceId = 3;
  auto fill = timed<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET);
  fill.value = 0xab;
  fill.bytes = 12;
  fill.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_MANAGED;
  CuptiBuffer().add(peer).add(fill).complete();
  const auto found = records<MUpti_ActivityMemcpy2>(MUPTI_ACTIVITY_KIND_MEMCPY2).at(0);
  EQUAL(MUPTI_ACTIVITY_MEMCPY_KIND_PTOP, found.copyKind);
  CHECK(found.srcDeviceId == 0 && found.srcContextId == 1 && found.dstDeviceId == 3 && found.dstContextId == 4);
  const auto filled = records<MUpti_ActivityMemset>(MUPTI_ACTIVITY_KIND_MEMSET).at(0);
  CHECK(filled.value == 0xab && filled.bytes == 12 && filled.memoryKind == MUPTI_ACTIVITY_MEMORY_KIND_MANAGED);
}

void waits() {
  auto context = record_of<CUpti_ActivityContext3>(CUPTI_ACTIVITY_KIND_CONTEXT);
  context.contextId = 41;
  context.deviceId = 5;
  CuptiBuffer buffer;
  buffer.add(context);
  for (const auto type :
       {CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE,
        CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE}) {
    auto wait = timed<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
    wait.type = type;
    wait.contextId = 41;
    wait.streamId = 7;
    wait.cudaEventId = 3;
    buffer.add(wait);
  }
  buffer.complete();
  const auto found = records<MUpti_ActivitySynchronization>(MUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  EQUAL(2u, found.size());
  EQUAL(MUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE, found.at(0).type);
  EQUAL(6u, found[0].contextId); // the context of device 5
  EQUAL(7u, found[0].streamId);
  EQUAL(MUPTI_SYNCHRONIZATION_INVALID_VALUE, found[0].musaEventId);
  EQUAL(MUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE, found.at(1).type);
  EQUAL(MUPTI_SYNCHRONIZATION_INVALID_VALUE, found[1].streamId);
}

void calls() {
  auto malloc_call = call(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020);
  malloc_call.processId = 11;
  malloc_call.threadId = 12;
  malloc_call.returnValue = 2;
  CuptiBuffer()
      .add(malloc_call)
      .add(call(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_ptsz_v7000))
      .add(call(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaGetLastError_v3020))
      .add(call(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyBatchAsync_v12080))
      .add(call(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2))
      .add(call(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuKernelGetName))
      .complete();
  const auto found = records<MUpti_ActivityAPI>(MUPTI_ACTIVITY_KIND_RUNTIME);
  EQUAL(3u, found.size()); // cudaGetLastError is left out
  EQUAL(MUPTI_RUNTIME_TRACE_CBID_musaMalloc, (int)found.at(0).cbid);
  CHECK(found[0].processId == 11 && found[0].threadId == 12 && found[0].returnValue == 2);
  EQUAL(MUPTI_RUNTIME_TRACE_CBID_musaMemcpyAsync, (int)found.at(1).cbid);
  EQUAL(MUPTI_RUNTIME_TRACE_CBID_INVALID, (int)found.at(2).cbid); // a call that only CUDA has, and that copies
  EQUAL(17u, found[2].correlationId);
  const auto driver = records<MUpti_ActivityAPI>(MUPTI_ACTIVITY_KIND_DRIVER);
  EQUAL(1u, driver.size());
  EQUAL(MUPTI_DRIVER_TRACE_CBID_muMemcpyHtoD, (int)driver.at(0).cbid);
}

void others() {
  auto external = record_of<CUpti_ActivityExternalCorrelation>(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
  external.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1;
  external.externalId = 1ull << 40;
  external.correlationId = 17;
  auto overhead = timed<CUpti_ActivityOverhead3>(CUPTI_ACTIVITY_KIND_OVERHEAD);
  overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
  overhead.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  overhead.objectId.pt.processId = 11;
  overhead.objectId.pt.threadId = 12;
  CuptiBuffer()
      .add(external)
      .add(record_of<CUpti_ActivityMarker2>(CUPTI_ACTIVITY_KIND_MARKER)) // the SDK has no such record
      .add(overhead)
      .complete();
  const auto found = records<MUpti_ActivityExternalCorrelation>(MUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION).at(0);
  EQUAL(MUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, found.externalKind);
  CHECK(found.externalId == 1ull << 40 && found.correlationId == 17);
  const auto flush = records<MUpti_ActivityOverhead>(MUPTI_ACTIVITY_KIND_OVERHEAD).at(0);
  EQUAL(MUPTI_ACTIVITY_OVERHEAD_MUPTI_BUFFER_FLUSH, flush.overheadKind);
  CHECK(flush.processId == 11 && flush.threadId == 12 && flush.start == 1000 && flush.end == 1500);
  size_t dropped = 99;
  EQUAL(MUPTI_SUCCESS, muptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
  EQUAL(0u, dropped);
}

void buffers() {
  const auto free_call = call(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020);
  const auto three = [&] { CuptiBuffer().add(free_call).add(free_call).add(free_call).complete(); };
  client_bytes = 2 * sizeof(MUpti_ActivityAPI) + 8;
  three();
  EQUAL(2, completed);
  EQUAL(MUPTI_ERROR_INVALID_OPERATION, flush_in_callback);
  client_bytes = 1 << 16;
  client_most = 1;
  three();
  EQUAL(5, completed);
  EQUAL(6u, records<MUpti_ActivityAPI>(MUPTI_ACTIVITY_KIND_RUNTIME).size());
  EQUAL(requested, completed);

  client_bytes = 0;
  three();
  client_bytes = 1 << 16;
  auto untimed = timed<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  untimed.end = 0; // as if CUPTI had no memory for the times
  CuptiBuffer().add(untimed).complete();
  size_t dropped = 0;
  EQUAL(MUPTI_SUCCESS, muptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
  EQUAL(4u, dropped);
  EQUAL(MUPTI_SUCCESS, muptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
  EQUAL(0u, dropped);
  EQUAL(6u, records<MUpti_ActivityAPI>(MUPTI_ACTIVITY_KIND_RUNTIME).size());

  // A buffer of another client of CUPTI. It is on the stack, so freeing it would abort this program.
  alignas(8) uint8_t foreign[sizeof free_call];
  std::memcpy(foreign, &free_call, sizeof free_call);
  complete_of_cupti(nullptr, 0, foreign, sizeof foreign, sizeof foreign);
  EQUAL(7u, records<MUpti_ActivityAPI>(MUPTI_ACTIVITY_KIND_RUNTIME).size());
}

void clock() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const double seconds = static_cast<double>(clock_of_cupti()) / 1e9 - static_cast<double>(now.tv_sec);
  CHECK(seconds > -60 && seconds < 60); // since the Unix epoch, not since boot
}

void kinds() {
  EQUAL(MUPTI_SUCCESS, muptiActivityEnable(MUPTI_ACTIVITY_KIND_KERNEL));
  EQUAL(MUPTI_ERROR_NOT_COMPATIBLE, muptiActivityEnable(MUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  EQUAL(MUPTI_ERROR_INVALID_KIND, muptiActivityEnable(static_cast<MUpti_ActivityKind>(CUPTI_ACTIVITY_KIND_CONTEXT)));
  EQUAL(MUPTI_SUCCESS, muptiActivityEnable(MUPTI_ACTIVITY_KIND_SYNCHRONIZATION));
  EQUAL(1u, dumped_kinds.count(CUPTI_ACTIVITY_KIND_CONTEXT));
  EQUAL(3u, enabled_kinds.size());
  EQUAL(MUPTI_SUCCESS, muptiActivityDisable(MUPTI_ACTIVITY_KIND_SYNCHRONIZATION));
  EQUAL(std::set<int>{CUPTI_ACTIVITY_KIND_KERNEL}, enabled_kinds);
  EQUAL(MUPTI_SUCCESS, muptiFinalize());
  CHECK(enabled_kinds.empty());
  const int before = flushes;
  EQUAL(MUPTI_ERROR_INVALID_OPERATION, muptiActivityFlushAll(0));
  EQUAL(before, flushes);
  CuptiBuffer().add(call(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020)).complete();
  EQUAL(0, requested); // records that were not flushed are dropped
}

void errors() {
  next_result = CUPTI_ERROR_QUEUE_EMPTY;
  EQUAL(MUPTI_ERROR_QUEUE_EMPTY, muptiActivityPushExternalCorrelationId(MUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 1));
  next_result = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  MUpti_SubscriberHandle handle = nullptr;
  const auto callback = [](void*, MUpti_CallbackDomain, MUpti_CallbackId, const void*) {};
  EQUAL(MUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, muptiSubscribe(&handle, callback, nullptr));
  EQUAL(MUPTI_ERROR_INVALID_PARAMETER, muptiUnsubscribe(handle));
  next_result = CUPTI_ERROR_INVALID_HANDLE;
  EQUAL(MUPTI_ERROR_INVALID_PARAMETER, muptiActivityEnable(MUPTI_ACTIVITY_KIND_MEMCPY));
  next_result = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES; // the SDK has no such code; its name is written to stderr once
  EQUAL(MUPTI_ERROR_UNKNOWN, muptiActivityEnable(MUPTI_ACTIVITY_KIND_MEMCPY));
  EQUAL(MUPTI_ERROR_UNKNOWN, muptiActivityEnable(MUPTI_ACTIVITY_KIND_MEMCPY));
}

std::vector<std::string> seen;
void see(void* userdata, MUpti_CallbackDomain domain, MUpti_CallbackId id, const void* raw) {
  const auto& data = *static_cast<const MUpti_CallbackData*>(raw);
  const bool ended = data.callbackSite == MUPTI_API_EXIT;
  seen.push_back((ended ? "-" : "+") + std::string(data.functionName));
  EQUAL(MUPTI_CB_DOMAIN_RUNTIME_API, domain);
  EQUAL(MUPTI_RUNTIME_TRACE_CBID_musaFree, (int)id);
  EQUAL(17u, data.correlationId);
  EQUAL(userdata, static_cast<void*>(&seen));
  CHECK(data.functionParams == nullptr && (data.functionReturnValue != nullptr) == ended);
  *data.correlationData += 1;
}

void callbacks() {
  MUpti_SubscriberHandle handle = nullptr, second = nullptr;
  EQUAL(MUPTI_ERROR_INVALID_PARAMETER, muptiSubscribe(&handle, nullptr, nullptr));
  EQUAL(MUPTI_SUCCESS, muptiSubscribe(&handle, see, &seen));
  EQUAL(MUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, muptiSubscribe(&second, see, &seen));
  EQUAL(MUPTI_ERROR_INVALID_PARAMETER, muptiEnableCallback(1, handle, MUPTI_CB_DOMAIN_RUNTIME_API, 1 << 20));
  EQUAL(MUPTI_ERROR_INVALID_PARAMETER, muptiEnableCallback(1, handle, MUPTI_CB_DOMAIN_RUNTIME_API, 0));
  EQUAL(MUPTI_ERROR_INVALID_PARAMETER, muptiEnableDomain(1, handle, MUPTI_CB_DOMAIN_INVALID));
  EQUAL(MUPTI_SUCCESS, muptiEnableDomain(1, handle, MUPTI_CB_DOMAIN_DRIVER_API));
  EQUAL(
      MUPTI_SUCCESS,
      muptiEnableCallback(1, handle, MUPTI_CB_DOMAIN_RUNTIME_API, MUPTI_RUNTIME_TRACE_CBID_musaMemcpyAsync));
  const std::set<std::pair<int, uint32_t>> both{
      {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020},
      {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_ptsz_v7000}};
  EQUAL(both, enabled_callbacks); // also the variant for per-thread default streams
  EQUAL(
      MUPTI_SUCCESS,
      muptiEnableCallback(0, handle, MUPTI_CB_DOMAIN_RUNTIME_API, MUPTI_RUNTIME_TRACE_CBID_musaMemcpyAsync));
  CHECK(enabled_callbacks.empty());

  uint64_t word = 0;
  cudaError_t result = cudaSuccess;
  CUpti_CallbackData data{};
  data.functionReturnValue = &result;
  data.correlationData = &word;
  data.correlationId = 17;
  for (const auto site : {CUPTI_API_ENTER, CUPTI_API_EXIT}) {
    data.callbackSite = site;
    for (const uint32_t id :
         {CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020, CUPTI_RUNTIME_TRACE_CBID_cudaGetLastError_v3020,
          CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyBatchAsync_v12080}) {
      subscribed(nullptr, CUPTI_CB_DOMAIN_RUNTIME_API, id, &data);
    }
  }
  EQUAL((std::vector<std::string>{"+musaFree", "-musaFree"}), seen);
  EQUAL(2u, word);
  EQUAL(MUPTI_SUCCESS, muptiUnsubscribe(handle));
  EQUAL(MUPTI_ERROR_INVALID_PARAMETER, muptiUnsubscribe(handle));
  CHECK(subscribed == nullptr);
}

} // namespace

int main(int, char** arguments) {
  const std::map<std::string, void (*)()> cases{
      {"kernels", kernels}, {"copies", copies}, {"waits", waits}, {"calls", calls},   {"others", others},
      {"buffers", buffers}, {"clock", clock},   {"kinds", kinds}, {"errors", errors}, {"callbacks", callbacks}};
  start();
  EQUAL(1, flushes); // returns the buffers of an earlier client of CUPTI
  cases.at(arguments[1])();
  return failures == 0 ? 0 : 1;
}
