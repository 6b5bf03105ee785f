// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// CUDA 13 adds data of edges to these functions, and drops the arguments for errors from the instantiation.
#include "musart/support.h"

namespace musa_cuda::by_hand {
namespace {

cudaGraph_t graph_of(musaGraph_t graph) { return (cudaGraph_t)graph; }
cudaGraphNode_t* nodes_of(musaGraphNode_t* nodes) { return (cudaGraphNode_t*)nodes; }

} // namespace

musaError_t musaStreamGetCaptureInfo(musaStream_t stream, enum musaStreamCaptureStatus* state, unsigned long long* id) {
  return status(cudaStreamGetCaptureInfo(
      (cudaStream_t)stream, (cudaStreamCaptureStatus*)state, id, nullptr, nullptr, nullptr, nullptr));
}
musaError_t musaStreamGetCaptureInfo_v2(
    musaStream_t stream, enum musaStreamCaptureStatus* state, unsigned long long* id, musaGraph_t* graph,
    const musaGraphNode_t** dependencies, size_t* count) {
  return status(cudaStreamGetCaptureInfo(
      (cudaStream_t)stream, (cudaStreamCaptureStatus*)state, id, (cudaGraph_t*)graph,
      (const cudaGraphNode_t**)dependencies, nullptr, count));
}

musaError_t musaGraphInstantiate(musaGraphExec_t* exec, musaGraph_t graph, musaGraphNode_t*, char*, size_t) {
  return status(cudaGraphInstantiate((cudaGraphExec_t*)exec, graph_of(graph), 0));
}
musaError_t musaGraphGetEdges(musaGraph_t graph, musaGraphNode_t* from, musaGraphNode_t* to, size_t* count) {
  return status(cudaGraphGetEdges(graph_of(graph), nodes_of(from), nodes_of(to), nullptr, count));
}
// The last reasons have other numbers.
musaError_t musaGraphExecUpdate(musaGraphExec_t exec, musaGraph_t graph, musaGraphExecUpdateResultInfo* result) {
  cudaGraphExecUpdateResultInfo from{};
  const cudaError_t error = cudaGraphExecUpdate((cudaGraphExec_t)exec, graph_of(graph), &from);
  switch (from.result) {
    case cudaGraphExecUpdateErrorNotSupported: result->result = musaGraphExecUpdateErrorNotSupported; break;
    case cudaGraphExecUpdateErrorUnsupportedFunctionChange:
      result->result = musaGraphExecUpdateErrorFunctionChanged;
      break;
    case cudaGraphExecUpdateErrorAttributesChanged: result->result = musaGraphExecUpdateErrorAttributesChanged; break;
    default: result->result = static_cast<musaGraphExecUpdateResult>(from.result);
  }
  result->errorNode = (musaGraphNode_t)from.errorNode;
  result->errorFromNode = (musaGraphNode_t)from.errorFromNode;
  return status(error);
}

} // namespace musa_cuda::by_hand
