// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Graphs and their executable form.
//
// The engine lock guards graphs, nodes and executables, except that a running launch reads its own snapshot without
// it. Removed objects are returned to the caller, which destroys them after releasing the lock: nodes own launches,
// whose destructors may call the runtime.
#pragma once

#include "engine/state.h"

struct MUgraphNode_st {
  musaGraph_t graph = nullptr;
  musa_emulator::Operation operation;
  std::vector<musaGraphNode_t> dependencies;
  // Set for a child graph node.
  std::unique_ptr<MUgraph_st> child;
};

struct MUgraph_st {
  // In the order they were added, which is one of their dependencies: a new node depends on earlier ones.
  std::vector<std::unique_ptr<MUgraphNode_st>> nodes;
};

namespace musa_emulator {

struct ExecutableNode {
  musaGraphNode_t origin = nullptr; // only compared; the node may have been destroyed
  musaGraphNodeType type = musaGraphNodeTypeEmpty;
  Operation operation;
  std::vector<size_t> dependencies; // indices of earlier nodes
};

// Nodes in the order of execution, with child graphs expanded.
using Plan = std::vector<ExecutableNode>;

struct GraphRun {
  std::shared_ptr<const Plan> plan;
  std::vector<RecordOperation> records; // for the plan's event record nodes, in order
  const Stream* stream = nullptr;       // the stream that it was launched into
  uint32_t correlation = 0;             // of the launch call
  bool waits_for_others = false;        // whether a launch of the plan does
};

} // namespace musa_emulator

struct MUgraphExec_st {
  std::shared_ptr<musa_emulator::Plan> plan; // copied before it is changed, if a launch uses it
  std::unique_ptr<MUgraph_st> source; // becomes a child graph if the executable is launched during a capture
};

namespace musa_emulator {

// The functions below require the lock.
using OwnedGraph = std::unique_ptr<MUgraph_st>;
using OwnedExecutable = std::unique_ptr<MUgraphExec_st>;

MUSA_ENGINE musaGraph_t create_graph();
// Convert a graph to a handle of the caller, and back.
MUSA_ENGINE musaGraph_t publish_graph(OwnedGraph graph);
MUSA_ENGINE OwnedGraph withdraw_graph(musaGraph_t graph);
MUSA_ENGINE bool is_graph(musaGraph_t graph);
MUSA_ENGINE bool is_node(musaGraphNode_t node);
MUSA_ENGINE bool is_executable(musaGraphExec_t exec);
MUSA_ENGINE musaGraphNode_t
add_node(MUgraph_st& graph, Operation operation, const std::vector<musaGraphNode_t>& dependencies);
MUSA_ENGINE musaGraphNode_t
add_child(MUgraph_st& graph, const MUgraph_st& child, const std::vector<musaGraphNode_t>& dependencies);
// Returns a copy. Its nodes are handles, the graph itself not yet.
MUSA_ENGINE OwnedGraph clone_graph(const MUgraph_st& graph);
MUSA_ENGINE musaGraphNodeType node_type(const Operation& operation);
MUSA_ENGINE musaGraphExec_t instantiate(const MUgraph_st& graph);
MUSA_ENGINE OwnedExecutable withdraw_executable(musaGraphExec_t exec);
// Returns the plan for changes, after copying it if a launch uses it.
MUSA_ENGINE Plan& writable_plan(MUgraphExec_st& exec);
// `replaced` receives the previous contents of the executable.
MUSA_ENGINE musaError_t update_executable(
    MUgraphExec_st& exec, musaGraph_t graph, musaGraphExecUpdateResultInfo* result, MUgraphExec_st* replaced);

// The functions below must be called without the lock.
void release_all_graphs();
MUSA_ENGINE musaError_t print_dot(musaGraph_t graph, const char* path, unsigned flags);

} // namespace musa_emulator
