// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <cstdio>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "emulator_test.h"
#include "musa.h"

class GraphTest : public EmulatorTest {
 protected:
  void SetUp() override {
    EmulatorTest::SetUp();
    ASSERT_OK(musaGraphCreate(&graph_, 0));
  }
  void TearDown() override {
    EXPECT_OK(musaGraphDestroy(graph_));
    EmulatorTest::TearDown();
  }

  musaGraphNode_t fill(char* dst, unsigned value, const std::vector<musaGraphNode_t>& after = {}) {
    musaMemsetParams p = {};
    p.dst = dst;
    p.value = value;
    p.elementSize = 1;
    p.width = 16;
    p.height = 1;
    musaGraphNode_t node = nullptr;
    EXPECT_OK(musaGraphAddMemsetNode(&node, graph_, after.data(), after.size(), &p));
    return node;
  }

  void run(musaGraphExec_t exec) {
    const Stream stream;
    EXPECT_OK(musaGraphLaunch(exec, stream));
    EXPECT_OK(musaStreamSynchronize(stream));
  }

  musaGraph_t graph_ = nullptr;
};

TEST_F(GraphTest, DependentNodesRunOneAfterAnother) {
  const DeviceArray<char> memory(16);
  musaGraphNode_t early = fill(memory, 1);
  fill(memory, 2, {early});
  musaGraphExec_t exec = nullptr;
  musaGraphNode_t culprit = early;
  char log[8] = "log";
  ASSERT_OK(musaGraphInstantiate(&exec, graph_, &culprit, log, sizeof log));
  EXPECT_EQ(nullptr, culprit);
  EXPECT_STREQ("", log);
  run(exec);
  EXPECT_EQ(2, read_back(memory.data, 16)[0]);
  EXPECT_OK(musaGraphExecDestroy(exec));
}

TEST_F(GraphTest, EveryKindOfNode) {
  const DeviceArray<int> a(8);
  const DeviceArray<int> b(8);
  const Event event(musaEventDisableTiming);
  std::atomic<int> calls{0};
  musaGraphNode_t set = nullptr;
  musaMemsetParams m = {};
  m.dst = a;
  m.value = 0x11223344;
  m.elementSize = 4;
  m.width = 8;
  m.height = 1;
  EXPECT_OK(musaGraphAddMemsetNode(&set, graph_, nullptr, 0, &m));
  musaGraphNode_t copy = nullptr;
  EXPECT_OK(musaGraphAddMemcpyNode1D(&copy, graph_, &set, 1, b, a, 32, musaMemcpyDeviceToDevice));
  musaGraphNode_t host = nullptr;
  musaHostNodeParams h = {[](void* p) { ++*static_cast<std::atomic<int>*>(p); }, &calls};
  EXPECT_OK(musaGraphAddHostNode(&host, graph_, &copy, 1, &h));
  musaGraphNode_t record = nullptr;
  EXPECT_OK(musaGraphAddEventRecordNode(&record, graph_, &host, 1, event));
  musaGraphNode_t wait = nullptr;
  EXPECT_OK(musaGraphAddEventWaitNode(&wait, graph_, &record, 1, event));
  musaGraph_t inner = nullptr;
  ASSERT_OK(musaGraphCreate(&inner, 0));
  musaGraphNode_t inner_host = nullptr;
  EXPECT_OK(musaGraphAddHostNode(&inner_host, inner, nullptr, 0, &h));
  musaGraphNode_t child = nullptr;
  EXPECT_OK(musaGraphAddChildGraphNode(&child, graph_, &wait, 1, inner));
  EXPECT_OK(musaGraphDestroy(inner)); // the node has a copy

  musaGraphExec_t exec = nullptr;
  ASSERT_OK(musaGraphInstantiate(&exec, graph_));
  run(exec);
  EXPECT_OK(musaEventSynchronize(event));
  EXPECT_EQ(2, calls.load());
  EXPECT_EQ(std::vector<int>(8, 0x11223344), read_back(b.data, 8));
  EXPECT_OK(musaGraphExecDestroy(exec));
}

TEST_F(GraphTest, UpdateTakesTheSameShapeOnly) {
  const DeviceArray<char> memory(64);
  musaGraphNode_t a = fill(memory, 1);
  fill(memory + 16, 2, {a});
  musaGraphExec_t exec = nullptr;
  ASSERT_OK(musaGraphInstantiate(&exec, graph_));
  musaGraph_t clone = nullptr;
  ASSERT_OK(musaGraphClone(&clone, graph_));
  musaGraphExecUpdateResultInfo info = {};
  EXPECT_OK(musaGraphExecUpdate(exec, clone, &info));
  EXPECT_EQ(musaGraphExecUpdateSuccess, info.result);
  EXPECT_OK(musaGraphDestroy(clone));
  const musaGraph_t first = graph_;
  ASSERT_OK(musaGraphCreate(&graph_, 0)); // filled by `fill`
  fill(memory + 16, 9, {fill(memory, 7)});
  EXPECT_OK(musaGraphExecUpdate(exec, graph_, &info));
  EXPECT_EQ(musaGraphExecUpdateSuccess, info.result);
  run(exec);
  EXPECT_EQ(7, read_back(memory.data, 32)[0]);
  EXPECT_EQ(9, read_back(memory.data, 32)[16]);
  fill(memory, 1);
  EXPECT_STATUS(musaErrorGraphExecUpdateFailure, musaGraphExecUpdate(exec, graph_, &info));
  musaGraphNode_t culprit = nullptr;
  musaGraphExecUpdateResult outcome = musaGraphExecUpdateSuccess;
  EXPECT_STATUS(musaErrorGraphExecUpdateFailure, musaGraphExecUpdate(exec, graph_, &culprit, &outcome));
  EXPECT_EQ(info.result, outcome);
  EXPECT_EQ(info.errorNode, culprit);
  EXPECT_EQ(musaGraphExecUpdateErrorTopologyChanged, info.result);
  EXPECT_OK(musaGraphDestroy(first));
  EXPECT_OK(musaGraphExecDestroy(exec));
}

TEST_F(GraphTest, AnExecutableMayChangeWhileItsLaunchIsInFlight) {
  const DeviceArray<char> memory(16);
  fill(memory, 1);
  musaGraphExec_t exec = nullptr;
  ASSERT_OK(musaGraphInstantiate(&exec, graph_));
  const Stream stream;
  Blocker blocker(stream);
  EXPECT_OK(musaGraphLaunch(exec, stream));
  const musaGraph_t first = graph_;
  ASSERT_OK(musaGraphCreate(&graph_, 0)); // filled by `fill`
  fill(memory, 9);
  musaGraphExecUpdateResultInfo info = {};
  EXPECT_OK(musaGraphExecUpdate(exec, graph_, &info));
  EXPECT_OK(musaGraphExecDestroy(exec));
  blocker.release();
  EXPECT_OK(musaStreamSynchronize(stream));
  EXPECT_EQ(1, read_back(memory.data, 16)[0]);
  EXPECT_OK(musaGraphDestroy(first));
}

TEST_F(GraphTest, PayloadsLiveAsLongAsAGraphNeedsThem) {
  static std::atomic<int> destroyed;
  static std::atomic<int> runs;
  destroyed = 0;
  runs = 0;
  const Stream stream;
  EXPECT_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeGlobal));
  EXPECT_OK(musaEmulatorLaunchTask(
      stream, "task", [](void*) { return ++runs, musaSuccess; }, nullptr,
      [](void*) {
        // A payload may release its objects through the API, so the runtime must hold no lock here.
        musaEvent_t event = nullptr;
        EXPECT_OK(musaEventCreate(&event));
        EXPECT_OK(musaEventDestroy(event));
        ++destroyed;
      }));
  musaGraph_t captured = nullptr;
  ASSERT_OK(musaStreamEndCapture(stream, &captured));
  musaGraphExec_t exec = nullptr;
  ASSERT_OK(musaGraphInstantiate(&exec, captured));
  EXPECT_OK(musaGraphDestroy(captured));
  EXPECT_EQ(0, destroyed.load());
  run(exec);
  run(exec);
  EXPECT_EQ(2, runs.load());
  EXPECT_OK(musaGraphExecDestroy(exec));
  EXPECT_EQ(1, destroyed.load());
}

TEST_F(GraphTest, LaunchedIntoACaptureItBecomesAChild) {
  const DeviceArray<char> memory(16);
  fill(memory, 3);
  musaGraphExec_t exec = nullptr;
  ASSERT_OK(musaGraphInstantiate(&exec, graph_));
  const Stream stream;
  EXPECT_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeGlobal));
  EXPECT_OK(musaGraphLaunch(exec, stream));
  musaGraph_t outer = nullptr;
  ASSERT_OK(musaStreamEndCapture(stream, &outer));
  musaGraphNode_t node = nullptr;
  size_t count = 1;
  EXPECT_OK(musaGraphGetNodes(outer, &node, &count));
  musaGraphNodeType type = musaGraphNodeTypeCount;
  EXPECT_OK(musaGraphNodeGetType(node, &type));
  EXPECT_EQ(musaGraphNodeTypeGraph, type);
  musaGraphExec_t outer_exec = nullptr;
  ASSERT_OK(musaGraphInstantiate(&outer_exec, outer));
  run(outer_exec);
  EXPECT_EQ(3, read_back(memory.data, 16)[15]);
  EXPECT_OK(musaGraphExecDestroy(outer_exec));
  EXPECT_OK(musaGraphExecDestroy(exec));
  EXPECT_OK(musaGraphDestroy(outer));
}

TEST_F(GraphTest, DotNamesNodesAndEdges) {
  const DeviceArray<char> memory(32);
  musaGraphNode_t a = fill(memory, 1);
  fill(memory + 16, 2, {a});
  const std::string path = ::testing::TempDir() + "emulator_graph_" + std::to_string(getpid()) + ".dot";
  EXPECT_OK(musaGraphDebugDotPrint(graph_, path.c_str(), musaGraphDebugDotFlagsVerbose));
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::remove(path.c_str());
  EXPECT_NE(std::string::npos, text.str().find("digraph")) << text.str();
  EXPECT_NE(std::string::npos, text.str().find("memset")) << text.str();
  EXPECT_NE(std::string::npos, text.str().find("\"g_0\" -> \"g_1\"")) << text.str();
  EXPECT_STATUS(musaErrorOperatingSystem, musaGraphDebugDotPrint(graph_, "/nonexistent/graph.dot", 0));
}

TEST_F(GraphTest, StaleAndForeignHandlesAreRefused) {
  const DeviceArray<char> memory(16);
  musaGraphNode_t node = fill(memory, 1);
  musaGraph_t other = nullptr;
  ASSERT_OK(musaGraphCreate(&other, 0));
  musaGraphNode_t wrong = nullptr;
  const DeviceArray<char> target(16);
  EXPECT_STATUS(
      musaErrorInvalidValue,
      musaGraphAddMemcpyNode1D(&wrong, other, &node, 1, target, memory, 16, musaMemcpyDeviceToDevice))
      << "another graph's node";
  EXPECT_OK(musaGraphDestroy(other));
  EXPECT_STATUS(musaErrorInvalidValue, musaGraphDestroy(other));
  musaGraphExec_t exec = nullptr;
  ASSERT_OK(musaGraphInstantiate(&exec, graph_));
  EXPECT_OK(musaGraphExecDestroy(exec));
  EXPECT_STATUS(musaErrorInvalidValue, musaGraphExecDestroy(exec));
  EXPECT_STATUS(musaErrorInvalidResourceHandle, musaGraphLaunch(exec, 0));
}

namespace {

// An operation that fails when it runs. `good` and `bad` are device memory; access to `bad` is not allowed.
struct Failure {
  const char* operation;
  musaError_t error;
  void (*enqueue)(musaStream_t stream, char* good, char* bad);
};

template <musaError_t error>
void fail_with(musaStream_t stream, char* /*good*/, char* /*bad*/) {
  EXPECT_OK(musaEmulatorLaunchTask(stream, "fails", [](void*) { return error; }, nullptr, nullptr));
}

const Failure kFailures[] = {
    {"a kernel that fails", musaErrorLaunchFailure, fail_with<musaErrorLaunchFailure>},
    {"a kernel with a failed assertion", musaErrorAssert, fail_with<musaErrorAssert>},
    {"a kernel that writes to bad memory", musaErrorIllegalAddress,
     [](musaStream_t stream, char*, char* bad) {
       const auto write = [](void* pointer) {
         *static_cast<volatile char*>(pointer) = 1;
         return musaSuccess;
       };
       EXPECT_OK(musaEmulatorLaunchTask(stream, "writes", write, bad, nullptr));
     }},
    {"a fill", musaErrorIllegalAddress,
     [](musaStream_t stream, char*, char* bad) { EXPECT_OK(musaMemsetAsync(bad, 1, 16, stream)); }},
    {"a fill of rows", musaErrorIllegalAddress,
     [](musaStream_t stream, char*, char* bad) { EXPECT_OK(musaMemset2DAsync(bad, 16, 1, 8, 2, stream)); }},
    {"a copy to bad memory", musaErrorIllegalAddress,
     [](musaStream_t stream, char* good, char* bad) {
       EXPECT_OK(musaMemcpyAsync(bad, good, 16, musaMemcpyDeviceToDevice, stream));
     }},
    {"a copy from bad memory", musaErrorIllegalAddress,
     [](musaStream_t stream, char* good, char* bad) {
       EXPECT_OK(musaMemcpyAsync(good, bad, 16, musaMemcpyDeviceToDevice, stream));
     }},
    {"a copy of rows", musaErrorIllegalAddress,
     [](musaStream_t stream, char* good, char* bad) {
       EXPECT_OK(musaMemcpy2DAsync(bad, 16, good, 16, 8, 2, musaMemcpyDeviceToDevice, stream));
     }},
};

void count(void* calls) { ++*static_cast<std::atomic<int>*>(calls); }

} // namespace

class GraphFailureTest : public EmulatorTest {
 protected:
  enum Kind { kStream, kGraph, kChildGraph };
  static constexpr const char* kPlaces[] = {" on a stream", " in a graph", " in a child graph"};

  // Work before the failure runs, work behind it does not, except that events are recorded. Everything later on the
  // device reports the error. The same holds without a graph.
  void check(const Failure& failure, Kind kind) {
    constexpr size_t kUnit = size_t{2} << 20;
    MUdeviceptr bad = 0; // mapped, without access
    ASSERT_EQ(MUSA_SUCCESS, muMemAddressReserve(&bad, kUnit, 0, 0, 0));
    MUmemAllocationProp prop = {};
    prop.type = MU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {MU_MEM_LOCATION_TYPE_DEVICE, 0};
    MUmemGenericAllocationHandle handle = 0;
    ASSERT_EQ(MUSA_SUCCESS, muMemCreate(&handle, kUnit, &prop, 0));
    ASSERT_EQ(MUSA_SUCCESS, muMemMap(bad, kUnit, 0, handle, 0));
    char* good = nullptr;
    ASSERT_OK(musaMalloc(reinterpret_cast<void**>(&good), 64));
    musaStream_t stream = nullptr;
    ASSERT_OK(musaStreamCreateWithFlags(&stream, musaStreamNonBlocking));
    musaEvent_t event = nullptr;
    ASSERT_OK(musaEventCreateWithFlags(&event, musaEventDisableTiming));
    std::atomic<int> before{0};
    std::atomic<int> behind{0};
    std::atomic<int> elsewhere{0};
    const auto enqueue = [&] {
      EXPECT_OK(musaLaunchHostFunc(stream, count, &before));
      failure.enqueue(stream, good, reinterpret_cast<char*>(bad));
      EXPECT_OK(musaMemsetAsync(good, 1, 16, stream)); // its success must not replace the error
      EXPECT_OK(musaLaunchHostFunc(stream, count, &behind));
      EXPECT_OK(musaEventRecordWithFlags(event, stream, kind == kStream ? 0 : musaEventRecordExternal));
    };
    musaGraphExec_t exec = nullptr;
    if (kind != kStream) {
      EXPECT_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeGlobal));
      enqueue();
      musaGraph_t graph = nullptr;
      ASSERT_OK(musaStreamEndCapture(stream, &graph));
      musaGraph_t outer = nullptr;
      ASSERT_OK(musaGraphCreate(&outer, 0));
      musaGraphNode_t child = nullptr;
      EXPECT_OK(musaGraphAddChildGraphNode(&child, outer, nullptr, 0, graph));
      ASSERT_OK(musaGraphInstantiate(&exec, kind == kGraph ? graph : outer, 0ULL));
    }
    musaStream_t other = nullptr;
    {
      Blocker blocker(stream);
      if (kind == kStream) {
        enqueue();
      } else {
        EXPECT_OK(musaGraphLaunch(exec, stream));
      }
      EXPECT_OK(musaSetDevice(1));
      ASSERT_OK(musaStreamCreateWithFlags(&other, musaStreamNonBlocking));
      EXPECT_OK(musaStreamWaitEvent(other, event, 0));
      EXPECT_OK(musaLaunchHostFunc(other, count, &elsewhere));
      EXPECT_OK(musaSetDevice(0));
    }
    EXPECT_STATUS(failure.error, musaStreamSynchronize(stream));
    EXPECT_STATUS(failure.error, musaGetLastError());
    EXPECT_STATUS(failure.error, musaStreamQuery(stream));
    EXPECT_STATUS(failure.error, musaDeviceSynchronize());
    EXPECT_STATUS(failure.error, musaMemsetAsync(good, 1, 16, stream));
    if (kind != kStream) {
      EXPECT_STATUS(failure.error, musaGraphLaunch(exec, stream));
    }
    EXPECT_EQ(1, before.load());
    EXPECT_EQ(0, behind.load());
    EXPECT_OK(musaSetDevice(1));
    EXPECT_OK(musaStreamSynchronize(other));
    EXPECT_EQ(1, elsewhere.load());
    EXPECT_OK(musaSetDevice(0));
    ASSERT_OK(musaEmulatorReset()); // frees everything
  }
};

TEST_F(GraphFailureTest, AFailingNodeLosesTheDeviceAsItsOperationDoesOnAStream) {
  for (const Failure& failure : kFailures) {
    for (const Kind kind : {kStream, kGraph, kChildGraph}) {
      SCOPED_TRACE(failure.operation + std::string(kPlaces[kind]));
      check(failure, kind);
    }
  }
}
