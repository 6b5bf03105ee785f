// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Graphs and their executable form.
//
// The engine lock guards graphs, nodes and executables, except where a running launch reads its own snapshot. What is
// taken out of service is handed to the caller, to be destroyed after the lock is released: nodes own launches, whose
// owners may call the runtime from their destructors.
#pragma once

#include "engine/state.h"

struct MUgraphNode_st {
  musaGraph_t graph = nullptr;
  musa_emulator::Operation operation;
  std::vector<musaGraphNode_t> dependencies;
  // The node that this one is a clone of, and the graph it came from.
  musaGraphNode_t origin = nullptr;
  // Of a child graph node.
  std::unique_ptr<MUgraph_st> child;
};

struct MUgraph_st {
  std::vector<std::unique_ptr<MUgraphNode_st>> nodes; // in the order they were added
};

namespace musa_emulator {

struct ExecutableNode {
  musaGraphNode_t origin = nullptr; // identity only; the node may be gone
  musaGraphNodeType type = musaGraphNodeTypeEmpty;
  Operation operation;
  std::vector<size_t> dependencies; // indices of earlier nodes
  bool enabled = true;
};

// Nodes in an order in which they can run one after the other; child graphs expanded.
using Plan = std::vector<ExecutableNode>;

struct GraphRun {
  std::shared_ptr<const Plan> plan;
  std::vector<RecordOperation> records; // of the plan's event record nodes, in order
  const Stream* stream = nullptr;       // that it was launched into
  uint32_t correlation = 0;             // of the launch
  bool waits_for_others = false;        // some launch in the plan does
};

} // namespace musa_emulator

struct MUgraphExec_st {
  std::shared_ptr<musa_emulator::Plan> plan; // copied before a change while a launch uses it
  unsigned long long flags = 0;
  std::unique_ptr<MUgraph_st> source; // what it was made from: launched into a capture, it becomes a child graph
};

namespace musa_emulator {

// With the lock held.
using OwnedGraph = std::unique_ptr<MUgraph_st>;
using OwnedExecutable = std::unique_ptr<MUgraphExec_st>;

MUSA_ENGINE musaGraph_t create_graph();
// Makes a graph a handle of the caller, and back.
MUSA_ENGINE musaGraph_t publish_graph(OwnedGraph graph);
MUSA_ENGINE OwnedGraph withdraw_graph(musaGraph_t graph);
MUSA_ENGINE std::unique_ptr<MUgraphNode_st> withdraw_node(musaGraphNode_t node);
MUSA_ENGINE bool is_graph(musaGraph_t graph);
MUSA_ENGINE bool is_node(musaGraphNode_t node);
MUSA_ENGINE bool is_executable(musaGraphExec_t exec);
MUSA_ENGINE musaGraphNode_t add_node(
    MUgraph_st& graph, Operation operation, const std::vector<musaGraphNode_t>& dependencies);
MUSA_ENGINE musaGraphNode_t add_child(
    MUgraph_st& graph, const MUgraph_st& child, const std::vector<musaGraphNode_t>& dependencies);
// A copy that is not a handle yet, though its nodes are.
MUSA_ENGINE OwnedGraph clone_graph(const MUgraph_st& graph);
MUSA_ENGINE musaGraphNodeType node_type(const Operation& operation);
// musaErrorInvalidValue, and the node at fault, for a graph with a cycle.
MUSA_ENGINE musaError_t make_plan(const MUgraph_st& graph, Plan* plan, musaGraphNode_t* culprit);
MUSA_ENGINE musaError_t instantiate(
    musaGraph_t graph, unsigned long long flags, musaGraphExec_t* exec, musaGraphNode_t* culprit);
MUSA_ENGINE OwnedExecutable withdraw_executable(musaGraphExec_t exec);
// The executable's plan, its own to change.
MUSA_ENGINE Plan& writable_plan(MUgraphExec_st& exec);
// `replaced` receives what the executable held before.
MUSA_ENGINE musaError_t update_executable(
    MUgraphExec_st& exec, musaGraph_t graph, musaGraphExecUpdateResultInfo* result, MUgraphExec_st* replaced);

// Without the lock.
void release_all_graphs();
MUSA_ENGINE musaError_t launch_graph(musaGraphExec_t exec, Stream& stream);
MUSA_ENGINE musaError_t print_dot(musaGraph_t graph, const char* path, unsigned flags);

// Runs the nodes of a launch, on the thread that drives the stream.
// On a lost device only the events are dealt with.
musaError_t execute_graph(const GraphRun& run, bool lost);

} // namespace musa_emulator
