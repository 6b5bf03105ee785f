// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/graph.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace musa_emulator {
namespace {

// The live handles. Graphs are rare and large compared with a stream operation, so this lookup is affordable; it
// detects any stale handle.
struct Handles {
  std::unordered_set<musaGraph_t> graphs;
  std::unordered_set<musaGraphNode_t> nodes;
  std::unordered_set<musaGraphExec_t> executables;
};

Handles& handles() {
  static Handles* instance = new Handles;
  return *instance;
}

// Invalidates the handles of a graph's nodes, including child graphs.
void forget_nodes(const MUgraph_st& graph) {
  for (const auto& node : graph.nodes) {
    handles().nodes.erase(node.get());
    if (node->child) {
      forget_nodes(*node->child);
    }
  }
}

// Appends the graph's nodes to the plan. The index of a node with a child graph follows those of the child's nodes.
void extend_plan(const MUgraph_st& graph, Plan* plan) {
  std::unordered_map<musaGraphNode_t, size_t> place;
  for (const auto& node : graph.nodes) {
    if (node->child) {
      extend_plan(*node->child, plan);
    }
    ExecutableNode entry;
    entry.origin = node.get();
    entry.type = node_type(node->operation);
    entry.operation = node->child ? Operation(EmptyOperation{}) : node->operation;
    for (musaGraphNode_t dependency : node->dependencies) {
      entry.dependencies.push_back(place[dependency]);
    }
    place[node.get()] = plan->size();
    plan->push_back(std::move(entry));
  }
}

} // namespace

musaGraph_t create_graph() { return publish_graph(std::make_unique<MUgraph_st>()); }

musaGraph_t publish_graph(OwnedGraph graph) {
  handles().graphs.insert(graph.get());
  engine().live_graphs.fetch_add(1);
  return graph.release();
}

OwnedGraph withdraw_graph(musaGraph_t graph) {
  engine().live_graphs.fetch_sub(1);
  handles().graphs.erase(graph);
  forget_nodes(*graph);
  return OwnedGraph(graph);
}

bool is_graph(musaGraph_t graph) { return handles().graphs.contains(graph); }

bool is_node(musaGraphNode_t node) { return handles().nodes.contains(node); }

bool is_executable(musaGraphExec_t exec) { return handles().executables.contains(exec); }

musaGraphNode_t add_node(MUgraph_st& graph, Operation operation, const std::vector<musaGraphNode_t>& dependencies) {
  auto node = std::make_unique<MUgraphNode_st>();
  node->graph = &graph;
  node->operation = std::move(operation);
  node->dependencies = dependencies;
  handles().nodes.insert(node.get());
  graph.nodes.push_back(std::move(node));
  return graph.nodes.back().get();
}

musaGraphNode_t add_child(
    MUgraph_st& graph, const MUgraph_st& child, const std::vector<musaGraphNode_t>& dependencies) {
  OwnedGraph copy = clone_graph(child);
  musaGraphNode_t node = add_node(graph, ChildGraphOperation{copy.get()}, dependencies);
  node->child = std::move(copy);
  return node;
}

OwnedGraph clone_graph(const MUgraph_st& graph) {
  auto copy = std::make_unique<MUgraph_st>();
  std::unordered_map<musaGraphNode_t, musaGraphNode_t> copies;
  for (const auto& node : graph.nodes) {
    musaGraphNode_t added = node->child ? add_child(*copy, *node->child, {}) : add_node(*copy, node->operation, {});
    copies[node.get()] = added;
  }
  for (const auto& node : graph.nodes) {
    for (musaGraphNode_t dependency : node->dependencies) {
      copies[node.get()]->dependencies.push_back(copies[dependency]);
    }
  }
  return copy;
}

musaGraphNodeType node_type(const Operation& operation) {
  if (std::holds_alternative<KernelOperation>(operation)) {
    return musaGraphNodeTypeKernel;
  }
  if (std::holds_alternative<CopyOperation>(operation)) {
    return musaGraphNodeTypeMemcpy;
  }
  if (std::holds_alternative<FillOperation>(operation)) {
    return musaGraphNodeTypeMemset;
  }
  if (std::holds_alternative<HostOperation>(operation)) {
    return musaGraphNodeTypeHost;
  }
  if (std::holds_alternative<ChildGraphOperation>(operation)) {
    return musaGraphNodeTypeGraph;
  }
  if (std::holds_alternative<WaitOperation>(operation)) {
    return musaGraphNodeTypeWaitEvent;
  }
  if (std::holds_alternative<RecordOperation>(operation)) {
    return musaGraphNodeTypeEventRecord;
  }
  return musaGraphNodeTypeEmpty;
}

musaGraphExec_t instantiate(const MUgraph_st& graph) {
  auto created = std::make_unique<MUgraphExec_st>();
  created->plan = std::make_shared<Plan>();
  extend_plan(graph, created->plan.get());
  created->source = clone_graph(graph);
  handles().executables.insert(created.get());
  engine().live_graphs.fetch_add(1);
  return created.release();
}

OwnedExecutable withdraw_executable(musaGraphExec_t exec) {
  handles().executables.erase(exec);
  forget_nodes(*exec->source);
  engine().live_graphs.fetch_sub(1);
  return OwnedExecutable(exec);
}

Plan& writable_plan(MUgraphExec_st& exec) {
  if (exec.plan.use_count() > 1) {
    exec.plan = std::make_shared<Plan>(*exec.plan);
  }
  return *exec.plan;
}

musaError_t update_executable(
    MUgraphExec_st& exec, musaGraph_t graph, musaGraphExecUpdateResultInfo* result, MUgraphExec_st* replaced) {
  *result = {};
  const auto fail = [result](musaGraphExecUpdateResult reason, musaGraphNode_t node) {
    result->result = reason;
    result->errorNode = node;
    return musaErrorGraphExecUpdateFailure;
  };
  Plan plan;
  extend_plan(*graph, &plan);
  const Plan& current = *exec.plan;
  if (plan.size() != current.size()) {
    return fail(musaGraphExecUpdateErrorTopologyChanged, nullptr);
  }
  for (size_t i = 0; i < plan.size(); ++i) {
    if (plan[i].type != current[i].type) {
      return fail(musaGraphExecUpdateErrorNodeTypeChanged, plan[i].origin);
    }
    if (plan[i].dependencies != current[i].dependencies) {
      return fail(musaGraphExecUpdateErrorTopologyChanged, plan[i].origin);
    }
  }
  replaced->plan = std::exchange(exec.plan, std::make_shared<Plan>(std::move(plan)));
  replaced->source = std::exchange(exec.source, clone_graph(*graph));
  forget_nodes(*replaced->source);
  return musaSuccess;
}

void release_all_graphs() {
  std::vector<OwnedExecutable> executables;
  std::vector<OwnedGraph> graphs;
  Lock lock(engine().mutex);
  while (!handles().executables.empty()) {
    executables.push_back(withdraw_executable(*handles().executables.begin()));
  }
  while (!handles().graphs.empty()) {
    graphs.push_back(withdraw_graph(*handles().graphs.begin()));
  }
}

} // namespace musa_emulator
