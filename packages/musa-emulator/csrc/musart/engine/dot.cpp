// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Writes graphs in Graphviz format.
#include <cinttypes>
#include <cstdio>
#include <string>

#include "engine/graph.h"

namespace musa_emulator {
namespace {

std::string label(const MUgraphNode_st& node, unsigned flags) {
  const bool verbose = (flags & musaGraphDebugDotFlagsVerbose) != 0;
  const auto shown = [&](unsigned flag) { return verbose || (flags & flag) != 0; };
  char text[256] = "";
  if (const auto* kernel = std::get_if<KernelOperation>(&node.operation)) {
    std::snprintf(text, sizeof text, "kernel\\n%s", kernel->launch->name());
  } else if (const auto* copy = std::get_if<CopyOperation>(&node.operation)) {
    if (shown(musaGraphDebugDotFlagsMemcpyNodeParams)) {
      std::snprintf(
          text, sizeof text, "memcpy\\n%zu x %zu x %zu bytes\\n%p to %p", copy->width, copy->height, copy->depth,
          static_cast<const void*>(copy->src), static_cast<void*>(copy->dst));
    } else {
      std::snprintf(text, sizeof text, "memcpy");
    }
  } else if (const auto* fill = std::get_if<FillOperation>(&node.operation)) {
    if (shown(musaGraphDebugDotFlagsMemsetNodeParams)) {
      std::snprintf(
          text, sizeof text, "memset\\n%zu x %zu x %u bytes of 0x%x at %p", fill->width, fill->height, fill->element,
          fill->value, static_cast<void*>(fill->dst));
    } else {
      std::snprintf(text, sizeof text, "memset");
    }
  } else {
    static const char* const names[] = {"kernel", "memcpy", "memset",     "host",
                                        "graph",  "empty",  "event wait", "event record"};
    std::snprintf(text, sizeof text, "%s", names[node_type(node.operation)]);
  }
  return text;
}

void print_nodes(std::FILE* file, const MUgraph_st& graph, const std::string& prefix, unsigned flags) {
  std::fprintf(
      file, "%s \"%s\" {\n", prefix == "g" ? "digraph" : "subgraph",
      prefix == "g" ? "graph" : ("cluster_" + prefix).c_str());
  const auto id = [&](const MUgraphNode_st* wanted) {
    size_t i = 0;
    while (graph.nodes[i].get() != wanted) {
      ++i;
    }
    return prefix + "_" + std::to_string(i);
  };
  for (const auto& node : graph.nodes) {
    std::fprintf(file, "  \"%s\" [shape=box label=\"%s\"];\n", id(node.get()).c_str(), label(*node, flags).c_str());
    for (const MUgraphNode_st* dependency : node->dependencies) {
      std::fprintf(file, "  \"%s\" -> \"%s\";\n", id(dependency).c_str(), id(node.get()).c_str());
    }
    if (node->child) {
      print_nodes(file, *node->child, id(node.get()), flags);
    }
  }
  std::fprintf(file, "}\n");
}

} // namespace

musaError_t print_dot(musaGraph_t graph, const char* path, unsigned flags) {
  Lock lock(engine().mutex);
  if (!is_graph(graph) || path == nullptr) {
    return musaErrorInvalidValue;
  }
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) {
    return musaErrorOperatingSystem;
  }
  print_nodes(file, *graph, "g", flags);
  const bool written = std::ferror(file) == 0;
  return std::fclose(file) == 0 && written ? musaSuccess : musaErrorOperatingSystem;
}

} // namespace musa_emulator
