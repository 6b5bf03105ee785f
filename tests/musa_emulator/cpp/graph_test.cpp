// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <cstdio>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "emulator_test.h"

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

TEST_F(GraphTest, NodesRunInDependencyOrderWhateverTheOrderOfAddition) {
  const DeviceArray<char> memory(16);
  musaGraphNode_t late = fill(memory, 2);
  musaGraphNode_t early = fill(memory, 1);
  EXPECT_OK(musaGraphAddDependencies(graph_, &early, &late, 1));
  musaGraphExec_t exec = nullptr;
  ASSERT_OK(musaGraphInstantiate(&exec, graph_));
  run(exec);
  EXPECT_EQ(2, read_back(memory.data, 16)[0]);
  EXPECT_OK(musaGraphExecDestroy(exec));
  EXPECT_OK(musaGraphRemoveDependencies(graph_, &early, &late, 1));
  EXPECT_STATUS(musaErrorInvalidValue, musaGraphRemoveDependencies(graph_, &early, &late, 1));
}

TEST_F(GraphTest, ACycleIsRefusedAndNamesANode) {
  const DeviceArray<char> memory(16);
  musaGraphNode_t a = fill(memory, 1);
  musaGraphNode_t b = fill(memory, 2, {a});
  EXPECT_OK(musaGraphAddDependencies(graph_, &b, &a, 1));
  musaGraphExec_t exec = nullptr;
  musaGraphNode_t culprit = nullptr;
  char log[128] = "";
  EXPECT_STATUS(musaErrorInvalidValue, musaGraphInstantiate(&exec, graph_, &culprit, log, sizeof log));
  EXPECT_TRUE(culprit == a || culprit == b);
  EXPECT_NE(std::string::npos, std::string(log).find("cycle"));
  musaGraphInstantiateParams p = {};
  EXPECT_STATUS(musaErrorInvalidValue, musaGraphInstantiateWithParams(&exec, graph_, &p));
  EXPECT_EQ(musaGraphInstantiateInvalidStructure, p.result_out);
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
  musaGraphNode_t empty = nullptr;
  EXPECT_OK(musaGraphAddEmptyNode(&empty, graph_, &wait, 1));
  musaGraph_t inner = nullptr;
  ASSERT_OK(musaGraphCreate(&inner, 0));
  musaGraphNode_t inner_host = nullptr;
  EXPECT_OK(musaGraphAddHostNode(&inner_host, inner, nullptr, 0, &h));
  musaGraphNode_t child = nullptr;
  EXPECT_OK(musaGraphAddChildGraphNode(&child, graph_, &empty, 1, inner));
  EXPECT_OK(musaGraphDestroy(inner)); // the node has a copy
  musaGraph_t copied = nullptr;
  EXPECT_OK(musaGraphChildGraphNodeGetGraph(child, &copied));
  size_t count = 0;
  EXPECT_OK(musaGraphGetNodes(copied, nullptr, &count));
  EXPECT_EQ(1u, count);

  musaGraphExec_t exec = nullptr;
  ASSERT_OK(musaGraphInstantiate(&exec, graph_));
  run(exec);
  EXPECT_OK(musaEventSynchronize(event));
  EXPECT_EQ(2, calls.load());
  EXPECT_EQ(std::vector<int>(8, 0x11223344), read_back(b.data, 8));
  EXPECT_OK(musaGraphExecDestroy(exec));
}

TEST_F(GraphTest, ParametersCanBeReadAndReplaced) {
  const DeviceArray<char> memory(64);
  musaGraphNode_t node = fill(memory, 1);
  musaMemsetParams p = {};
  EXPECT_OK(musaGraphMemsetNodeGetParams(node, &p));
  EXPECT_EQ(1u, p.value);
  EXPECT_EQ(16u, p.width);
  musaGraphExec_t exec = nullptr;
  ASSERT_OK(musaGraphInstantiate(&exec, graph_));
  p.value = 5;
  EXPECT_OK(musaGraphMemsetNodeSetParams(node, &p));
  run(exec);
  EXPECT_EQ(1, read_back(memory.data, 1)[0]) << "the executable keeps what it was made from";
  EXPECT_OK(musaGraphExecMemsetNodeSetParams(exec, node, &p));
  run(exec);
  EXPECT_EQ(5, read_back(memory.data, 1)[0]);
  musaHostNodeParams h = {};
  EXPECT_STATUS(musaErrorInvalidValue, musaGraphHostNodeGetParams(node, &h)) << "another kind of node";
  EXPECT_OK(musaGraphExecDestroy(exec));
}

TEST_F(GraphTest, UpdateTakesTheSameShapeOnly) {
  const DeviceArray<char> memory(64);
  musaGraphNode_t a = fill(memory, 1);
  fill(memory + 16, 2, {a});
  musaGraphExec_t exec = nullptr;
  ASSERT_OK(musaGraphInstantiate(&exec, graph_));
  musaGraph_t same = nullptr;
  ASSERT_OK(musaGraphClone(&same, graph_));
  musaGraphNode_t twin = nullptr;
  EXPECT_OK(musaGraphNodeFindInClone(&twin, a, same));
  musaMemsetParams p = {};
  EXPECT_OK(musaGraphMemsetNodeGetParams(twin, &p));
  p.value = 7;
  EXPECT_OK(musaGraphMemsetNodeSetParams(twin, &p));
  musaGraphExecUpdateResultInfo info = {};
  EXPECT_OK(musaGraphExecUpdate(exec, same, &info));
  EXPECT_EQ(musaGraphExecUpdateSuccess, info.result);
  run(exec);
  EXPECT_EQ(7, read_back(memory.data, 1)[0]);
  musaGraphNode_t extra = nullptr;
  EXPECT_OK(musaGraphAddEmptyNode(&extra, same, nullptr, 0));
  EXPECT_STATUS(musaErrorGraphExecUpdateFailure, musaGraphExecUpdate(exec, same, &info));
  musaGraphNode_t culprit = nullptr;
  musaGraphExecUpdateResult outcome = musaGraphExecUpdateSuccess;
  EXPECT_STATUS(musaErrorGraphExecUpdateFailure, musaGraphExecUpdate(exec, same, &culprit, &outcome));
  EXPECT_EQ(info.result, outcome);
  EXPECT_EQ(info.errorNode, culprit);
  EXPECT_EQ(musaGraphExecUpdateErrorTopologyChanged, info.result);
  EXPECT_OK(musaGraphDestroy(same));
  EXPECT_OK(musaGraphExecDestroy(exec));
}

TEST_F(GraphTest, DisabledNodesAreSkipped) {
  const DeviceArray<char> memory(32);
  fill(memory, 1);
  musaGraphNode_t second = fill(memory + 16, 2);
  EXPECT_OK(musaMemset(memory, 0, 32));
  musaGraphExec_t exec = nullptr;
  ASSERT_OK(musaGraphInstantiate(&exec, graph_));
  EXPECT_OK(musaGraphNodeSetEnabled(exec, second, 0));
  unsigned enabled = 1;
  EXPECT_OK(musaGraphNodeGetEnabled(exec, second, &enabled));
  EXPECT_EQ(0u, enabled);
  EXPECT_OK(musaDeviceSynchronize());
  run(exec);
  EXPECT_EQ(1, read_back(memory.data, 32)[0]);
  EXPECT_EQ(0, read_back(memory.data, 32)[16]);
  EXPECT_OK(musaGraphExecDestroy(exec));
}

TEST_F(GraphTest, AnExecutableMayChangeWhileItsLaunchIsInFlight) {
  const DeviceArray<char> memory(16);
  musaGraphNode_t node = fill(memory, 1);
  musaGraphExec_t exec = nullptr;
  ASSERT_OK(musaGraphInstantiate(&exec, graph_));
  const Stream stream;
  Blocker blocker(stream);
  EXPECT_OK(musaGraphLaunch(exec, stream));
  musaMemsetParams p = {};
  EXPECT_OK(musaGraphMemsetNodeGetParams(node, &p));
  p.value = 9;
  EXPECT_OK(musaGraphExecMemsetNodeSetParams(exec, node, &p));
  EXPECT_OK(musaGraphExecDestroy(exec));
  blocker.release();
  EXPECT_OK(musaStreamSynchronize(stream));
  EXPECT_EQ(1, read_back(memory.data, 16)[0]);
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
  EXPECT_STATUS(musaErrorInvalidValue, musaGraphAddEmptyNode(&wrong, other, &node, 1)) << "another graph's node";
  EXPECT_OK(musaGraphDestroy(other));
  EXPECT_STATUS(musaErrorInvalidValue, musaGraphDestroy(other));
  EXPECT_OK(musaGraphDestroyNode(node));
  EXPECT_STATUS(musaErrorInvalidValue, musaGraphDestroyNode(node));
  musaGraphExec_t exec = nullptr;
  ASSERT_OK(musaGraphInstantiate(&exec, graph_));
  EXPECT_OK(musaGraphExecDestroy(exec));
  EXPECT_STATUS(musaErrorInvalidValue, musaGraphExecDestroy(exec));
  EXPECT_STATUS(musaErrorInvalidResourceHandle, musaGraphLaunch(exec, 0));
}
