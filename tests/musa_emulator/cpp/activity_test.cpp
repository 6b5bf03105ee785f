// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// MUPTI: activity records, their correlation, buffers, and callbacks.
#include <mupti.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>

#include "emulator_test.h"

#define EXPECT_MUPTI(expected, expression) EXPECT_EQ(expected, expression)

namespace {

// The records of the buffers, by type.
struct Records {
  std::vector<MUpti_ActivityAPI> calls;
  std::vector<MUpti_ActivityKernel4> kernels;
  std::vector<MUpti_ActivityMemcpy> copies;
  std::vector<MUpti_ActivityMemcpy2> peer_copies;
  std::vector<MUpti_ActivityMemset> fills;
  std::vector<MUpti_ActivitySynchronization> waits;
  std::vector<MUpti_ActivityExternalCorrelation> externals;
  std::vector<MUpti_ActivityOverhead> overheads;

  const MUpti_ActivityAPI* call(MUpti_CallbackId id) const {
    const auto found = std::find_if(calls.begin(), calls.end(), [id](const auto& c) { return c.cbid == id; });
    return found != calls.end() ? &*found : nullptr;
  }
};

std::mutex records_mutex;
Records records;
size_t buffer_bytes = 64 << 10;
size_t most_per_buffer = 0;
int buffers_lent = 0;
int buffers_back = 0;

void request(uint8_t** buffer, size_t* size, size_t* most) {
  *size = buffer_bytes;
  *most = most_per_buffer;
  *buffer = buffer_bytes != 0 ? static_cast<uint8_t*>(std::aligned_alloc(8, (buffer_bytes + 7) / 8 * 8)) : nullptr;
  buffers_lent += *buffer != nullptr;
}

template <class T>
void keep(std::vector<T>& kept, const MUpti_Activity* record) {
  kept.push_back(*reinterpret_cast<const T*>(record));
}

void complete(MUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  std::lock_guard lock(records_mutex);
  ++buffers_back;
  MUpti_Activity* record = nullptr;
  size_t count = 0;
  while (muptiActivityGetNextRecord(buffer, valid, &record) == MUPTI_SUCCESS) {
    ++count;
    switch (record->kind) {
      case MUPTI_ACTIVITY_KIND_RUNTIME:
      case MUPTI_ACTIVITY_KIND_DRIVER: keep(records.calls, record); break;
      case MUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      case MUPTI_ACTIVITY_KIND_KERNEL: keep(records.kernels, record); break;
      case MUPTI_ACTIVITY_KIND_MEMCPY: keep(records.copies, record); break;
      case MUPTI_ACTIVITY_KIND_MEMCPY2: keep(records.peer_copies, record); break;
      case MUPTI_ACTIVITY_KIND_MEMSET: keep(records.fills, record); break;
      case MUPTI_ACTIVITY_KIND_SYNCHRONIZATION: keep(records.waits, record); break;
      case MUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: keep(records.externals, record); break;
      case MUPTI_ACTIVITY_KIND_OVERHEAD: keep(records.overheads, record); break;
      default: ADD_FAILURE() << "unknown kind " << record->kind;
    }
  }
  if (most_per_buffer != 0) {
    EXPECT_LE(count, most_per_buffer);
  }
  std::free(buffer);
}

musaError_t nothing(void*) { return musaSuccess; }

constexpr MUpti_ActivityKind kAll[] = {
    MUPTI_ACTIVITY_KIND_RUNTIME,         MUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    MUPTI_ACTIVITY_KIND_MEMCPY,          MUPTI_ACTIVITY_KIND_MEMCPY2,
    MUPTI_ACTIVITY_KIND_MEMSET,          MUPTI_ACTIVITY_KIND_DRIVER,
    MUPTI_ACTIVITY_KIND_SYNCHRONIZATION, MUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
};

} // namespace

class ActivityTest : public EmulatorTest {
 protected:
  void SetUp() override {
    EmulatorTest::SetUp();
    records = {};
    buffer_bytes = 64 << 10;
    most_per_buffer = 0;
    buffers_lent = buffers_back = 0;
    EXPECT_MUPTI(MUPTI_SUCCESS, muptiActivityRegisterCallbacks(request, complete));
  }
  void TearDown() override {
    EXPECT_MUPTI(MUPTI_SUCCESS, muptiFinalize());
    EXPECT_EQ(buffers_lent, buffers_back) << "a buffer was kept";
    EmulatorTest::TearDown();
  }
  static void call() {
    int device = 0;
    EXPECT_OK(musaGetDevice(&device));
  }
  static void enable_all() {
    for (const MUpti_ActivityKind kind : kAll) {
      EXPECT_MUPTI(MUPTI_SUCCESS, muptiActivityEnable(kind));
    }
  }
  static Records collect() {
    for (const MUpti_ActivityKind kind : kAll) {
      EXPECT_MUPTI(MUPTI_SUCCESS, muptiActivityDisable(kind));
    }
    EXPECT_MUPTI(MUPTI_SUCCESS, muptiActivityFlushAll(MUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    return std::exchange(records, {});
  }
};

TEST_F(ActivityTest, NothingIsRecordedUnlessAskedFor) {
  const DeviceArray<int> array(16);
  EXPECT_OK(musaMemset(array, 0, 64));
  const Records got = collect();
  EXPECT_TRUE(got.calls.empty());
  EXPECT_TRUE(got.fills.empty());
}

TEST_F(ActivityTest, OnlyEnabledKindsAreRecorded) {
  const DeviceArray<int> array(16);
  EXPECT_MUPTI(MUPTI_SUCCESS, muptiActivityEnable(MUPTI_ACTIVITY_KIND_MEMSET));
  EXPECT_OK(musaMemset(array, 0, 64));
  read_back<int>(array, 16);
  EXPECT_OK(musaDeviceSynchronize());
  const Records got = collect();
  EXPECT_EQ(1u, got.fills.size());
  EXPECT_TRUE(got.calls.empty());
  EXPECT_TRUE(got.copies.empty());
}

TEST_F(ActivityTest, WorkCarriesTheIdOfTheCallThatPutItOnTheStream) {
  const Stream stream;
  const DeviceArray<int> array(16);
  int* host = nullptr;
  EXPECT_OK(musaMallocHost(&host, 64));
  enable_all();
  EXPECT_OK(musaMemsetAsync(array, 7, 64, stream));
  EXPECT_OK(musaMemcpyAsync(host, array, 64, musaMemcpyDeviceToHost, stream));
  EXPECT_OK(musaEmulatorLaunchTask(stream, "named", nothing, nullptr, nullptr));
  EXPECT_OK(musaStreamSynchronize(stream));
  const Records got = collect();
  EXPECT_OK(musaFreeHost(host));

  ASSERT_EQ(1u, got.fills.size());
  ASSERT_EQ(1u, got.copies.size());
  ASSERT_EQ(1u, got.kernels.size());
  const auto* fill = got.call(MUPTI_RUNTIME_TRACE_CBID_musaMemsetAsync);
  const auto* copy = got.call(MUPTI_RUNTIME_TRACE_CBID_musaMemcpyAsync);
  const auto* launch = got.call(MUPTI_RUNTIME_TRACE_CBID_musaLaunchKernel);
  ASSERT_TRUE(fill != nullptr && copy != nullptr && launch != nullptr);
  EXPECT_EQ(fill->correlationId, got.fills[0].correlationId);
  EXPECT_EQ(copy->correlationId, got.copies[0].correlationId);
  EXPECT_EQ(launch->correlationId, got.kernels[0].correlationId);
  EXPECT_EQ(3u, (std::set{fill->correlationId, copy->correlationId, launch->correlationId}).size());

  unsigned long long id = 0;
  EXPECT_OK(musaStreamGetId(stream, &id));
  EXPECT_EQ(id, got.fills[0].streamId);
  EXPECT_EQ(id, got.kernels[0].streamId);
  EXPECT_EQ(0u, got.fills[0].deviceId);
  EXPECT_EQ(64u, got.copies[0].bytes);
  EXPECT_EQ(MUPTI_ACTIVITY_MEMCPY_KIND_DTOH, got.copies[0].copyKind);
  EXPECT_EQ(MUPTI_ACTIVITY_MEMORY_KIND_PINNED, got.copies[0].dstKind);
  EXPECT_EQ(7u, got.fills[0].value);
  EXPECT_STREQ("named", got.kernels[0].name);
  // The work runs in the stream's order, and after its calls begin.
  EXPECT_LE(fill->start, got.fills[0].start);
  EXPECT_LE(got.fills[0].start, got.fills[0].end);
  EXPECT_LE(got.fills[0].end, got.copies[0].start);
  EXPECT_LE(got.copies[0].end, got.kernels[0].start);

  const auto* wait = got.call(MUPTI_RUNTIME_TRACE_CBID_musaStreamSynchronize);
  ASSERT_TRUE(wait != nullptr);
  ASSERT_EQ(1u, got.waits.size());
  EXPECT_EQ(MUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE, got.waits[0].type);
  EXPECT_EQ(wait->correlationId, got.waits[0].correlationId);
}

TEST_F(ActivityTest, TimesAreOfTheUnixEpoch) {
  const auto now = [] {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count());
  };
  enable_all();
  const uint64_t before = now();
  EXPECT_OK(musaDeviceSynchronize());
  const uint64_t after = now();
  const Records got = collect();
  ASSERT_EQ(1u, got.calls.size());
  EXPECT_LE(before, got.calls[0].start);
  EXPECT_LE(got.calls[0].start, got.calls[0].end);
  EXPECT_LE(got.calls[0].end, after);
}

TEST_F(ActivityTest, AFailedCallIsRecordedWithItsError) {
  enable_all();
  EXPECT_STATUS(musaErrorInvalidDevice, musaSetDevice(77));
  (void)musaGetLastError();
  const Records got = collect();
  ASSERT_FALSE(got.calls.empty());
  EXPECT_EQ(uint32_t{MUPTI_RUNTIME_TRACE_CBID_musaSetDevice}, got.calls[0].cbid);
  EXPECT_EQ(uint32_t{musaErrorInvalidDevice}, got.calls[0].returnValue);
}

TEST_F(ActivityTest, DriverCallsAreAKindOfTheirOwn) {
  enable_all();
  int version = 0;
  EXPECT_EQ(MUSA_SUCCESS, muDriverGetVersion(&version));
  const Records got = collect();
  ASSERT_EQ(1u, got.calls.size());
  EXPECT_EQ(MUPTI_ACTIVITY_KIND_DRIVER, got.calls[0].kind);
  EXPECT_EQ(uint32_t{MUPTI_DRIVER_TRACE_CBID_muDriverGetVersion}, got.calls[0].cbid);
}

TEST_F(ActivityTest, CopiesBetweenDevicesNameBoth) {
  const DeviceArray<int> here(16);
  EXPECT_OK(musaSetDevice(1));
  {
    const DeviceArray<int> there(16);
    EXPECT_OK(musaSetDevice(0));
    enable_all();
    EXPECT_OK(musaMemcpyPeer(there, 1, here, 0, 64));
    EXPECT_OK(musaDeviceSynchronize());
    EXPECT_OK(musaSetDevice(1));
  }
  EXPECT_OK(musaSetDevice(0));
  const Records got = collect();
  ASSERT_EQ(1u, got.peer_copies.size());
  EXPECT_EQ(MUPTI_ACTIVITY_MEMCPY_KIND_PTOP, got.peer_copies[0].copyKind);
  EXPECT_EQ(0u, got.peer_copies[0].srcDeviceId);
  EXPECT_EQ(1u, got.peer_copies[0].dstDeviceId);
  EXPECT_TRUE(got.copies.empty());
}

TEST_F(ActivityTest, AGraphsWorkCarriesTheIdOfTheLaunch) {
  const DeviceArray<int> array(16);
  const Stream stream;
  musaGraph_t graph = nullptr;
  musaGraphExec_t exec = nullptr;
  EXPECT_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeGlobal));
  EXPECT_OK(musaMemsetAsync(array, 1, 64, stream));
  EXPECT_OK(musaEmulatorLaunchTask(stream, "node", nothing, nullptr, nullptr));
  EXPECT_OK(musaStreamEndCapture(stream, &graph));
  EXPECT_OK(musaGraphInstantiate(&exec, graph, 0));
  enable_all();
  EXPECT_OK(musaGraphLaunch(exec, stream));
  EXPECT_OK(musaGraphLaunch(exec, stream));
  EXPECT_OK(musaStreamSynchronize(stream));
  const Records got = collect();
  EXPECT_OK(musaGraphExecDestroy(exec));
  EXPECT_OK(musaGraphDestroy(graph));

  std::vector<uint32_t> launches;
  for (const auto& call : got.calls) {
    if (call.cbid == MUPTI_RUNTIME_TRACE_CBID_musaGraphLaunch) {
      launches.push_back(call.correlationId);
    }
  }
  ASSERT_EQ(2u, launches.size());
  ASSERT_EQ(2u, got.fills.size());
  ASSERT_EQ(2u, got.kernels.size());
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(launches[i], got.fills[i].correlationId);
    EXPECT_EQ(launches[i], got.kernels[i].correlationId);
  }
}

TEST_F(ActivityTest, ExternalIdsNestAndBelongToTheirThread) {
  enable_all();
  const auto push = [](uint64_t id) {
    return muptiActivityPushExternalCorrelationId(MUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, id);
  };
  const auto pop = [](uint64_t* id) {
    return muptiActivityPopExternalCorrelationId(MUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, id);
  };
  EXPECT_MUPTI(MUPTI_SUCCESS, push(41));
  EXPECT_MUPTI(MUPTI_SUCCESS, push(42));
  EXPECT_OK(musaDeviceSynchronize());
  std::thread([&] {
    EXPECT_OK(musaDeviceSynchronize());
    EXPECT_MUPTI(MUPTI_ERROR_QUEUE_EMPTY, pop(nullptr));
  }).join();
  uint64_t id = 0;
  EXPECT_MUPTI(MUPTI_SUCCESS, pop(&id));
  EXPECT_EQ(42u, id);
  EXPECT_OK(musaDeviceSynchronize());
  EXPECT_MUPTI(MUPTI_SUCCESS, pop(&id));
  EXPECT_EQ(41u, id);
  EXPECT_MUPTI(MUPTI_ERROR_QUEUE_EMPTY, pop(&id));
  const Records got = collect();
  ASSERT_EQ(3u, got.calls.size());
  ASSERT_EQ(2u, got.externals.size());
  EXPECT_EQ(42u, got.externals[0].externalId);
  EXPECT_EQ(got.calls[0].correlationId, got.externals[0].correlationId);
  EXPECT_EQ(41u, got.externals[1].externalId);
  EXPECT_EQ(got.calls[2].correlationId, got.externals[1].correlationId);
}

TEST_F(ActivityTest, SmallBuffersHoldWhatFits) {
  buffer_bytes = 2 * sizeof(MUpti_ActivityAPI) + 8;
  enable_all();
  for (int i = 0; i < 5; ++i) {
    call();
  }
  EXPECT_EQ(5u, collect().calls.size());
  EXPECT_EQ(3, buffers_back);

  most_per_buffer = 1;
  enable_all();
  call();
  call();
  EXPECT_EQ(2u, collect().calls.size());
  EXPECT_EQ(5, buffers_back);
}

TEST_F(ActivityTest, RecordsWithoutABufferAreCountedAsDropped) {
  buffer_bytes = 0;
  enable_all();
  call();
  call();
  EXPECT_TRUE(collect().calls.empty());
  size_t dropped = 0;
  EXPECT_MUPTI(MUPTI_SUCCESS, muptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
  EXPECT_EQ(2u, dropped);
  EXPECT_MUPTI(MUPTI_SUCCESS, muptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
  EXPECT_EQ(0u, dropped);

  buffer_bytes = 8; // too small for any record: returned, not kept
  enable_all();
  call();
  EXPECT_TRUE(collect().calls.empty());
  EXPECT_MUPTI(MUPTI_SUCCESS, muptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
  EXPECT_EQ(1u, dropped);
}

TEST_F(ActivityTest, ManyRecordsArriveWithoutAFlush) {
  enable_all();
  for (int i = 0; i < 5000; ++i) {
    call();
  }
  size_t arrived = 0;
  {
    std::lock_guard lock(records_mutex);
    arrived = records.calls.size();
  }
  EXPECT_GT(arrived, 4000u);
  EXPECT_EQ(5000u, collect().calls.size());
}

TEST_F(ActivityTest, WorkOfManyThreadsIsRecordedCompletely) {
  enable_all();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      const Stream stream;
      for (int i = 0; i < 200; ++i) {
        EXPECT_OK(musaEmulatorLaunchTask(stream, "task", nothing, nullptr, nullptr));
      }
      EXPECT_OK(musaStreamSynchronize(stream));
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const Records got = collect();
  EXPECT_EQ(800u, got.kernels.size());
  std::set<uint32_t> calls;
  for (const auto& call : got.calls) {
    EXPECT_TRUE(calls.insert(call.correlationId).second) << "an id was given twice";
  }
  for (const auto& kernel : got.kernels) {
    EXPECT_EQ(1u, calls.count(kernel.correlationId));
  }
}

TEST_F(ActivityTest, FlushingIsRecordedAsOverhead) {
  EXPECT_MUPTI(MUPTI_SUCCESS, muptiActivityEnable(MUPTI_ACTIVITY_KIND_OVERHEAD));
  EXPECT_MUPTI(MUPTI_SUCCESS, muptiActivityFlushAll(0));
  EXPECT_EQ(1u, records.overheads.size());
}

TEST_F(ActivityTest, MisuseIsRefused) {
  size_t size = sizeof(size_t);
  size_t value = 1 << 20;
  uint32_t number = 0;
  const char* text = nullptr;
  EXPECT_MUPTI(MUPTI_ERROR_INVALID_KIND, muptiActivityEnable(MUPTI_ACTIVITY_KIND_INVALID));
  EXPECT_MUPTI(MUPTI_ERROR_INVALID_KIND, muptiActivityEnable(static_cast<MUpti_ActivityKind>(4711)));
  EXPECT_MUPTI(MUPTI_ERROR_INVALID_KIND, muptiActivityDisable(static_cast<MUpti_ActivityKind>(4711)));
  EXPECT_MUPTI(MUPTI_SUCCESS, muptiActivityEnable(MUPTI_ACTIVITY_KIND_KERNEL));
  EXPECT_MUPTI(MUPTI_ERROR_NOT_COMPATIBLE, muptiActivityEnable(MUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  EXPECT_MUPTI(MUPTI_ERROR_INVALID_PARAMETER, muptiActivityRegisterCallbacks(request, nullptr));
  EXPECT_MUPTI(MUPTI_ERROR_INVALID_PARAMETER, muptiActivityFlushAll(2));
  EXPECT_MUPTI(MUPTI_ERROR_INVALID_PARAMETER, muptiActivityGetNumDroppedRecords(nullptr, 0, nullptr));
  EXPECT_MUPTI(
      MUPTI_ERROR_INVALID_PARAMETER,
      muptiActivityPushExternalCorrelationId(MUPTI_EXTERNAL_CORRELATION_KIND_INVALID, 1));
  EXPECT_MUPTI(
      MUPTI_ERROR_INVALID_PARAMETER,
      muptiActivityPopExternalCorrelationId(MUPTI_EXTERNAL_CORRELATION_KIND_SIZE, nullptr));
  EXPECT_MUPTI(MUPTI_SUCCESS, muptiActivitySetAttribute(MUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &value));
  EXPECT_MUPTI(
      MUPTI_ERROR_INVALID_PARAMETER,
      muptiActivitySetAttribute(static_cast<MUpti_ActivityAttribute>(99), &size, &value));
  size = 1;
  EXPECT_MUPTI(
      MUPTI_ERROR_INVALID_PARAMETER, muptiActivitySetAttribute(MUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &value));
  EXPECT_MUPTI(MUPTI_ERROR_INVALID_PARAMETER, muptiGetVersion(nullptr));
  EXPECT_MUPTI(MUPTI_SUCCESS, muptiGetVersion(&number));
  EXPECT_EQ(uint32_t{MUPTI_API_VERSION}, number);
  EXPECT_MUPTI(MUPTI_SUCCESS, muptiGetResultString(MUPTI_ERROR_QUEUE_EMPTY, &text));
  EXPECT_STREQ("MUPTI_ERROR_QUEUE_EMPTY", text);
  EXPECT_MUPTI(MUPTI_ERROR_INVALID_PARAMETER, muptiGetResultString(static_cast<MUptiResult>(555), &text));

  uint64_t junk[8] = {1000, 1000};
  MUpti_Activity* record = nullptr;
  auto* bytes = reinterpret_cast<uint8_t*>(junk);
  EXPECT_MUPTI(MUPTI_ERROR_INVALID_PARAMETER, muptiActivityGetNextRecord(nullptr, 64, &record));
  EXPECT_MUPTI(MUPTI_ERROR_INVALID_KIND, muptiActivityGetNextRecord(bytes, sizeof junk, &record));
  EXPECT_MUPTI(MUPTI_ERROR_MAX_LIMIT_REACHED, muptiActivityGetNextRecord(bytes, 0, &record));

  EXPECT_MUPTI(MUPTI_SUCCESS, muptiFinalize());
  EXPECT_MUPTI(MUPTI_ERROR_INVALID_OPERATION, muptiActivityFlushAll(0)) << "no buffers are registered any more";
}

TEST_F(ActivityTest, TheDeviceOfAContextIsTold) {
  uint32_t device = 99;
  EXPECT_OK(musaSetDevice(1));
  EXPECT_MUPTI(MUPTI_SUCCESS, muptiGetDeviceId(nullptr, &device));
  EXPECT_EQ(1u, device);
  EXPECT_OK(musaSetDevice(0));
  MUcontext context = nullptr;
  EXPECT_EQ(MUSA_SUCCESS, muDevicePrimaryCtxRetain(&context, 1));
  EXPECT_MUPTI(MUPTI_SUCCESS, muptiGetDeviceId(context, &device));
  EXPECT_EQ(1u, device);
  int current = -1;
  EXPECT_OK(musaGetDevice(&current));
  EXPECT_EQ(0, current) << "a query changes nothing";
  EXPECT_EQ(MUSA_SUCCESS, muDevicePrimaryCtxRelease(1));
  EXPECT_MUPTI(MUPTI_ERROR_INVALID_PARAMETER, muptiGetDeviceId(nullptr, nullptr));
}

namespace {

struct Seen {
  std::vector<std::string> names;
  std::vector<musaError_t> results;
  bool words_kept = true;
};

void observe(void* userdata, MUpti_CallbackDomain, MUpti_CallbackId, const void* raw) {
  auto& seen = *static_cast<Seen*>(userdata);
  const auto& data = *static_cast<const MUpti_CallbackData*>(raw);
  if (data.callbackSite == MUPTI_API_ENTER) {
    *data.correlationData = data.correlationId;
    seen.names.push_back(std::string("+") + data.functionName);
    int device = 0;
    EXPECT_OK(musaGetDevice(&device)); // calls from a callback are not reported
  } else {
    seen.words_kept = seen.words_kept && *data.correlationData == data.correlationId;
    seen.names.push_back(std::string("-") + data.functionName);
    seen.results.push_back(*static_cast<const musaError_t*>(data.functionReturnValue));
  }
}

} // namespace

TEST_F(ActivityTest, CallbacksSurroundTheCallsTheyAreEnabledFor) {
  Seen seen;
  MUpti_SubscriberHandle subscriber = nullptr;
  MUpti_SubscriberHandle second = nullptr;
  EXPECT_MUPTI(MUPTI_ERROR_INVALID_PARAMETER, muptiSubscribe(&subscriber, nullptr, nullptr));
  ASSERT_EQ(MUPTI_SUCCESS, muptiSubscribe(&subscriber, observe, &seen));
  EXPECT_MUPTI(MUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, muptiSubscribe(&second, observe, &seen));
  EXPECT_MUPTI(MUPTI_ERROR_INVALID_PARAMETER, muptiEnableCallback(1, subscriber, MUPTI_CB_DOMAIN_RUNTIME_API, 1 << 20));
  EXPECT_MUPTI(MUPTI_ERROR_INVALID_PARAMETER, muptiEnableDomain(1, subscriber, MUPTI_CB_DOMAIN_INVALID));
  EXPECT_OK(musaDeviceSynchronize());
  EXPECT_TRUE(seen.names.empty());

  EXPECT_MUPTI(
      MUPTI_SUCCESS,
      muptiEnableCallback(1, subscriber, MUPTI_CB_DOMAIN_RUNTIME_API, MUPTI_RUNTIME_TRACE_CBID_musaDeviceSynchronize));
  EXPECT_OK(musaDeviceSynchronize());
  call();
  EXPECT_EQ((std::vector<std::string>{"+musaDeviceSynchronize", "-musaDeviceSynchronize"}), seen.names);

  seen = {};
  EXPECT_MUPTI(MUPTI_SUCCESS, muptiEnableDomain(1, subscriber, MUPTI_CB_DOMAIN_RUNTIME_API));
  EXPECT_STATUS(musaErrorInvalidDevice, musaSetDevice(77));
  EXPECT_EQ(
      (std::vector<std::string>{"+musaSetDevice", "-musaSetDevice"}),
      std::vector<std::string>(seen.names.begin(), seen.names.begin() + 2));
  EXPECT_EQ(musaErrorInvalidDevice, seen.results.at(0));
  EXPECT_TRUE(seen.words_kept);
  (void)musaGetLastError();

  EXPECT_MUPTI(MUPTI_SUCCESS, muptiUnsubscribe(subscriber));
  EXPECT_MUPTI(MUPTI_ERROR_INVALID_PARAMETER, muptiUnsubscribe(subscriber));
  seen = {};
  EXPECT_OK(musaDeviceSynchronize());
  EXPECT_TRUE(seen.names.empty());
}
