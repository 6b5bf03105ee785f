// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "emulator_test.h"

class CaptureTest : public EmulatorTest {
 protected:
  // Ends the capture, checks the status, discards the graph.
  void end(musaStream_t stream, musaError_t expected) {
    musaGraph_t graph = nullptr;
    EXPECT_STATUS(expected, musaStreamEndCapture(stream, &graph));
    EXPECT_EQ(expected == musaSuccess, graph != nullptr);
    if (graph != nullptr) {
      EXPECT_OK(musaGraphDestroy(graph));
    }
    musaGetLastError();
  }
  musaStreamCaptureStatus status(musaStream_t stream) {
    musaStreamCaptureStatus status = musaStreamCaptureStatusNone;
    EXPECT_OK(musaStreamIsCapturing(stream, &status));
    return status;
  }
};

TEST_F(CaptureTest, CapturedWorkRunsOnlyWhenLaunched) {
  const Stream stream;
  Journal journal;
  static Journal* target;
  target = &journal;
  EXPECT_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeGlobal));
  EXPECT_EQ(musaStreamCaptureStatusActive, status(stream));
  for (int i = 1; i <= 3; ++i) {
    EXPECT_OK(musaLaunchHostFunc(
        stream, [](void* value) { target->append(static_cast<int>(reinterpret_cast<intptr_t>(value))); },
        reinterpret_cast<void*>(static_cast<intptr_t>(i))));
  }
  musaGraph_t graph = nullptr;
  ASSERT_OK(musaStreamEndCapture(stream, &graph));
  EXPECT_EQ(musaStreamCaptureStatusNone, status(stream));
  EXPECT_OK(musaDeviceSynchronize());
  EXPECT_TRUE(journal.entries().empty());
  musaGraphExec_t exec = nullptr;
  ASSERT_OK(musaGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  EXPECT_OK(musaGraphDestroy(graph)); // the executable does not need it
  EXPECT_OK(musaGraphLaunch(exec, stream));
  EXPECT_OK(musaGraphLaunch(exec, stream));
  EXPECT_OK(musaStreamSynchronize(stream));
  EXPECT_EQ((std::vector<int>{1, 2, 3, 1, 2, 3}), journal.entries());
  EXPECT_OK(musaGraphExecDestroy(exec));
}

TEST_F(CaptureTest, CopiesFillsAndTasksBecomeNodes) {
  const Stream stream;
  const DeviceArray<int> a(4);
  const DeviceArray<int> b(4);
  EXPECT_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeThreadLocal));
  EXPECT_OK(musaMemsetAsync(a, 1, 16, stream));
  EXPECT_OK(musaEmulatorLaunchTask(
      stream, "increment",
      [](void* data) {
        for (int i = 0; i < 4; ++i) {
          ++static_cast<int*>(data)[i];
        }
        return musaSuccess;
      },
      a.data, nullptr));
  EXPECT_OK(musaMemcpyAsync(b, a, 16, musaMemcpyDeviceToDevice, stream));
  musaGraph_t graph = nullptr;
  ASSERT_OK(musaStreamEndCapture(stream, &graph));
  size_t count = 0;
  EXPECT_OK(musaGraphGetNodes(graph, nullptr, &count));
  ASSERT_EQ(3u, count);
  std::vector<musaGraphNode_t> nodes(3);
  EXPECT_OK(musaGraphGetNodes(graph, nodes.data(), &count));
  const musaGraphNodeType expected[] = {musaGraphNodeTypeMemset, musaGraphNodeTypeKernel, musaGraphNodeTypeMemcpy};
  for (int i = 0; i < 3; ++i) {
    musaGraphNodeType type = musaGraphNodeTypeCount;
    EXPECT_OK(musaGraphNodeGetType(nodes[static_cast<size_t>(i)], &type));
    EXPECT_EQ(expected[i], type);
  }
  EXPECT_OK(musaGraphGetEdges(graph, nullptr, nullptr, &count));
  EXPECT_EQ(2u, count);
  musaGraphExec_t exec = nullptr;
  ASSERT_OK(musaGraphInstantiate(&exec, graph, 0ULL));
  EXPECT_OK(musaGraphLaunch(exec, stream));
  EXPECT_OK(musaStreamSynchronize(stream));
  EXPECT_EQ(std::vector<int>(4, 0x01010102), read_back(b.data, 4));
  EXPECT_OK(musaGraphExecDestroy(exec));
  EXPECT_OK(musaGraphDestroy(graph));
}

TEST_F(CaptureTest, ForkAndJoinThroughEvents) {
  const Stream origin;
  const Stream side;
  const Event fork(musaEventDisableTiming);
  const Event join(musaEventDisableTiming);
  const DeviceArray<char> memory(64);
  EXPECT_OK(musaStreamBeginCapture(origin, musaStreamCaptureModeGlobal));
  EXPECT_OK(musaMemsetAsync(memory, 1, 16, origin));
  EXPECT_OK(musaEventRecord(fork, origin));
  EXPECT_OK(musaStreamWaitEvent(side, fork, 0));
  EXPECT_EQ(musaStreamCaptureStatusActive, status(side));
  unsigned long long id[2] = {0, 1};
  musaStreamCaptureStatus state = musaStreamCaptureStatusNone;
  EXPECT_OK(musaStreamGetCaptureInfo_v2(origin, &state, &id[0], nullptr, nullptr, nullptr));
  EXPECT_OK(musaStreamGetCaptureInfo_v2(side, &state, &id[1]));
  EXPECT_EQ(id[0], id[1]);
  EXPECT_OK(musaMemsetAsync(memory + 16, 2, 16, side));
  EXPECT_OK(musaMemsetAsync(memory + 32, 3, 16, origin));
  EXPECT_OK(musaEventRecord(join, side));
  EXPECT_OK(musaStreamWaitEvent(origin, join, 0));
  EXPECT_OK(musaMemsetAsync(memory + 48, 4, 16, origin));
  musaGraph_t graph = nullptr;
  ASSERT_OK(musaStreamEndCapture(origin, &graph));
  EXPECT_EQ(musaStreamCaptureStatusNone, status(side));
  size_t nodes = 0;
  size_t edges = 0;
  EXPECT_OK(musaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_OK(musaGraphGetEdges(graph, nullptr, nullptr, &edges));
  EXPECT_EQ(4u, nodes);
  EXPECT_EQ(4u, edges) << "a diamond";
  musaGraphExec_t exec = nullptr;
  ASSERT_OK(musaGraphInstantiate(&exec, graph));
  EXPECT_OK(musaGraphLaunch(exec, origin));
  EXPECT_OK(musaStreamSynchronize(origin));
  const std::vector<char> back = read_back(memory.data, 64);
  EXPECT_EQ((std::vector<char>{1, 2, 3, 4}), (std::vector<char>{back[0], back[16], back[32], back[48]}));
  EXPECT_OK(musaGraphExecDestroy(exec));
  EXPECT_OK(musaGraphDestroy(graph));
}

TEST_F(CaptureTest, UnjoinedWorkIsAnError) {
  const Stream origin;
  const Stream side;
  const Event fork(musaEventDisableTiming);
  const DeviceArray<char> memory(64);
  EXPECT_OK(musaStreamBeginCapture(origin, musaStreamCaptureModeGlobal));
  EXPECT_OK(musaEventRecord(fork, origin));
  EXPECT_OK(musaStreamWaitEvent(side, fork, 0));
  EXPECT_OK(musaMemsetAsync(memory, 2, 16, side));
  end(origin, musaErrorStreamCaptureUnjoined);
  EXPECT_EQ(musaStreamCaptureStatusNone, status(side));
}

TEST_F(CaptureTest, WaitingOnACapturingStreamInvalidates) {
  const Stream stream;
  const std::vector<std::function<musaError_t()>> forbidden = {
      [&] { return musaStreamSynchronize(stream); },
      [&] { return musaStreamQuery(stream); },
      [&] { return musaDeviceSynchronize(); },
      [&] { return musaStreamAddCallback(stream, [](musaStream_t, musaError_t, void*) {}, nullptr, 0); },
  };
  for (const auto& call : forbidden) {
    EXPECT_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeRelaxed));
    EXPECT_STATUS(musaErrorStreamCaptureUnsupported, call());
    EXPECT_EQ(musaStreamCaptureStatusInvalidated, status(stream));
    EXPECT_STATUS(musaErrorStreamCaptureInvalidated, musaLaunchHostFunc(stream, [](void*) {}, nullptr));
    end(stream, musaErrorStreamCaptureInvalidated);
    EXPECT_OK(musaStreamSynchronize(stream)) << "usable again";
  }
}

TEST_F(CaptureTest, AskingAnyEventIsUnsafeUnlessRelaxed) {
  const Stream stream;
  const Event event;
  EXPECT_OK(musaEventRecord(event, musaStreamLegacy));
  EXPECT_OK(musaEventSynchronize(event));
  EXPECT_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeGlobal));
  std::thread([&] { EXPECT_STATUS(musaErrorStreamCaptureUnsupported, musaEventQuery(event)); }).join();
  end(stream, musaErrorStreamCaptureInvalidated);
  EXPECT_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeThreadLocal));
  std::thread([&] { EXPECT_OK(musaEventQuery(event)); }).join();
  end(stream, musaSuccess);
  EXPECT_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeRelaxed));
  EXPECT_OK(musaEventQuery(event));
  end(stream, musaSuccess);
}

TEST_F(CaptureTest, CapturedEventsCannotBeQueried) {
  const Stream stream;
  const Event event;
  EXPECT_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeRelaxed));
  EXPECT_OK(musaEventRecord(event, stream));
  EXPECT_STATUS(musaErrorCapturedEvent, musaEventQuery(event));
  end(stream, musaErrorStreamCaptureInvalidated);
  EXPECT_STATUS(musaErrorInvalidValue, musaEventSynchronize(event)) << "until it is recorded again";
  EXPECT_OK(musaEventRecord(event, stream));
  EXPECT_OK(musaEventSynchronize(event));
}

TEST_F(CaptureTest, DependingOnUncapturedWorkBreaksIsolation) {
  const Stream stream;
  const Stream other;
  const Event event;
  EXPECT_OK(musaEventRecord(event, other));
  EXPECT_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeGlobal));
  EXPECT_STATUS(musaErrorStreamCaptureIsolation, musaStreamWaitEvent(stream, event, 0));
  end(stream, musaErrorStreamCaptureInvalidated);
  EXPECT_OK(musaStreamSynchronize(other));
}

TEST_F(CaptureTest, TwoCapturesCannotMerge) {
  const Stream first;
  const Stream second;
  const Event event;
  EXPECT_OK(musaStreamBeginCapture(first, musaStreamCaptureModeGlobal));
  EXPECT_OK(musaStreamBeginCapture(second, musaStreamCaptureModeGlobal));
  EXPECT_OK(musaEventRecord(event, first));
  EXPECT_STATUS(musaErrorStreamCaptureMerge, musaStreamWaitEvent(second, event, 0));
  end(first, musaErrorStreamCaptureInvalidated);
  end(second, musaErrorStreamCaptureInvalidated);
}

TEST_F(CaptureTest, TheDefaultStreamCannotDependOnACapturingStream) {
  const Stream blocking(musaStreamDefault);
  EXPECT_OK(musaStreamBeginCapture(blocking, musaStreamCaptureModeRelaxed));
  EXPECT_STATUS(musaErrorStreamCaptureImplicit, musaLaunchHostFunc(0, [](void*) {}, nullptr));
  end(blocking, musaErrorStreamCaptureInvalidated);
  EXPECT_STATUS(
      musaErrorStreamCaptureUnsupported, musaStreamBeginCapture(musaStreamLegacy, musaStreamCaptureModeGlobal));
}

TEST_F(CaptureTest, BeginAndEndMustMatch) {
  const Stream stream;
  musaGraph_t graph = nullptr;
  EXPECT_STATUS(musaErrorIllegalState, musaStreamEndCapture(stream, &graph)) << "nothing was begun";
  EXPECT_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeGlobal));
  EXPECT_STATUS(musaErrorIllegalState, musaStreamBeginCapture(stream, musaStreamCaptureModeGlobal));
  std::thread([&] {
    musaGraph_t theirs = nullptr;
    EXPECT_STATUS(musaErrorStreamCaptureWrongThread, musaStreamEndCapture(stream, &theirs));
  }).join();
  end(stream, musaErrorIllegalState); // the capture has ended nevertheless
  EXPECT_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeRelaxed));
  std::thread([&] { end(stream, musaSuccess); }).join();
}

TEST_F(CaptureTest, EndingOnAJoinedStreamIsUnmatched) {
  const Stream origin;
  const Stream side;
  const Event fork;
  EXPECT_OK(musaStreamBeginCapture(origin, musaStreamCaptureModeGlobal));
  EXPECT_OK(musaEventRecord(fork, origin));
  EXPECT_OK(musaStreamWaitEvent(side, fork, 0));
  musaGraph_t graph = nullptr;
  EXPECT_STATUS(musaErrorStreamCaptureUnmatched, musaStreamEndCapture(side, &graph));
  end(origin, musaErrorStreamCaptureInvalidated);
}

TEST_F(CaptureTest, DestroyingTheStreamDropsTheCapture) {
  musaStream_t stream = nullptr;
  ASSERT_OK(musaStreamCreate(&stream));
  EXPECT_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeGlobal));
  EXPECT_OK(musaLaunchHostFunc(stream, [](void*) {}, nullptr));
  EXPECT_OK(musaStreamDestroy(stream));
  EXPECT_EQ(0u, musaEmulatorLiveGraphs());
}

TEST_F(CaptureTest, ExternalEventsBecomeNodes) {
  const Stream stream;
  const Stream other;
  const Event before(musaEventDisableTiming);
  const Event after(musaEventDisableTiming);
  EXPECT_OK(musaEventRecord(before, other));
  EXPECT_OK(musaStreamBeginCapture(stream, musaStreamCaptureModeGlobal));
  EXPECT_OK(musaStreamWaitEvent(stream, before, musaEventWaitExternal));
  EXPECT_OK(musaEventRecordWithFlags(after, stream, musaEventRecordExternal));
  musaGraph_t graph = nullptr;
  ASSERT_OK(musaStreamEndCapture(stream, &graph));
  musaGraphExec_t exec = nullptr;
  ASSERT_OK(musaGraphInstantiate(&exec, graph));
  EXPECT_OK(musaGraphLaunch(exec, stream));
  EXPECT_OK(musaEventSynchronize(after));
  EXPECT_OK(musaDeviceSynchronize());
  EXPECT_OK(musaGraphExecDestroy(exec));
  EXPECT_OK(musaGraphDestroy(graph));
}
