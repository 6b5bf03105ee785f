// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/graph.h"

#include <algorithm>
#include <cstdio>

#include "api_support.h"
#include "engine/event.h"
#include "engine/kernel.h"
#include "engine/transfer.h"

using namespace musa_emulator;

namespace {

// Fills the caller's array; returns only the count if it is null.
template <class T>
void fill_array(const std::vector<T>& items, T* array, size_t* count) {
  if (array != nullptr) {
    const size_t capacity = *count;
    for (size_t i = 0; i < capacity; ++i) {
      array[i] = i < items.size() ? items[i] : T{};
    }
    *count = std::min(capacity, items.size());
  } else {
    *count = items.size();
  }
}

template <class Body>
musaError_t with_graph(musaGraph_t graph, Body&& body) {
  Lock lock(engine().mutex);
  return is_graph(graph) ? body() : musaErrorInvalidValue;
}

template <class Body>
musaError_t with_node(musaGraphNode_t node, Body&& body) {
  Lock lock(engine().mutex);
  return is_node(node) ? body() : musaErrorInvalidValue;
}

// Calls `body(operation)` if the node has an operation of this kind.
template <class Wanted, class Body>
musaError_t with_operation(musaGraphNode_t node, Body&& body) {
  return with_node(node, [&] {
    auto* operation = std::get_if<Wanted>(&node->operation);
    return operation != nullptr ? body(*operation) : musaErrorInvalidValue;
  });
}

musaError_t add(
    musaGraphNode_t* node, musaGraph_t graph, const musaGraphNode_t* dependencies, size_t count, Operation operation) {
  return with_graph(graph, [&] {
    if (node == nullptr || (count != 0 && dependencies == nullptr)) {
      return musaErrorInvalidValue;
    }
    const std::vector<musaGraphNode_t> after(dependencies, dependencies + count);
    for (musaGraphNode_t dependency : after) {
      if (!is_node(dependency) || dependency->graph != graph ||
          std::count(after.begin(), after.end(), dependency) != 1) {
        return musaErrorInvalidValue;
      }
    }
    if (const auto* child = std::get_if<ChildGraphOperation>(&operation)) {
      if (!is_graph(child->graph) || child->graph == graph) {
        return musaErrorInvalidValue;
      }
      *node = add_child(*graph, *child->graph, after);
    } else {
      *node = add_node(*graph, std::move(operation), after);
    }
    return musaSuccess;
  });
}

musaError_t kernel_operation(const musaKernelNodeParams* parameters, Operation* operation) {
  if (parameters == nullptr || parameters->extra != nullptr) {
    return musaErrorInvalidValue; // packed argument buffers are not supported
  }
  std::shared_ptr<Launch> launch;
  const musaError_t status = make_launch(
      *current_device(), parameters->func, parameters->gridDim, parameters->blockDim, parameters->kernelParams,
      parameters->sharedMemBytes, /*cooperative=*/false, &launch);
  *operation = KernelOperation{std::move(launch)};
  return status;
}

musaError_t copy_operation(const musaMemcpy3DParms* parameters, Operation* operation) {
  if (parameters == nullptr) {
    return musaErrorInvalidValue;
  }
  CopyOperation copy{};
  musaError_t status = box_copy(*parameters, &copy);
  if (status == musaSuccess) {
    status = check_copy(copy);
  }
  *operation = std::move(copy);
  return status;
}

musaError_t linear_operation(
    void* dst, const void* src, size_t bytes, musaMemcpyKind kind, Operation* operation) {
  CopyOperation copy = linear_copy(dst, src, bytes, kind);
  const musaError_t status = check_copy(copy);
  *operation = std::move(copy);
  return status;
}

musaError_t fill_operation(const musaMemsetParams* parameters, Operation* operation) {
  if (parameters == nullptr) {
    return musaErrorInvalidValue;
  }
  FillOperation fill{};
  fill.dst = static_cast<char*>(parameters->dst);
  fill.value = parameters->value;
  fill.element = parameters->elementSize;
  fill.width = parameters->width;
  fill.height = std::max<size_t>(parameters->height, 1);
  fill.pitch = parameters->pitch;
  *operation = fill;
  return check_fill(fill);
}

musaError_t host_operation(const musaHostNodeParams* parameters, Operation* operation) {
  if (parameters == nullptr || parameters->fn == nullptr) {
    return musaErrorInvalidValue;
  }
  *operation = HostOperation{parameters->fn, parameters->userData};
  return musaSuccess;
}

// Replaces a node's operation by one of the same kind. The old one is destroyed after the lock is released.
musaError_t replace(musaGraphNode_t node, Operation& operation) {
  return with_node(node, [&] {
    if (node->operation.index() != operation.index()) {
      return musaErrorInvalidValue;
    }
    std::swap(node->operation, operation);
    return musaSuccess;
  });
}

// Returns the executable's entry for a node of its source graph, or nullptr.
ExecutableNode* find_entry(Plan& plan, musaGraphNode_t node) {
  const auto found =
      std::find_if(plan.begin(), plan.end(), [node](const ExecutableNode& entry) { return entry.origin == node; });
  return found != plan.end() ? &*found : nullptr;
}

musaError_t replace_executable(musaGraphExec_t exec, musaGraphNode_t node, Operation& operation) {
  Lock lock(engine().mutex);
  if (!is_executable(exec)) {
    return musaErrorInvalidValue;
  }
  ExecutableNode* entry = find_entry(writable_plan(*exec), node);
  if (entry == nullptr || entry->operation.index() != operation.index()) {
    return musaErrorInvalidValue;
  }
  std::swap(entry->operation, operation);
  return musaSuccess;
}

musaError_t make_executable(
    musaGraphExec_t* exec, musaGraph_t graph, unsigned long long flags, musaGraphNode_t* culprit) {
  return with_graph(graph, [&] {
    return exec != nullptr ? instantiate(graph, flags, exec, culprit) : musaErrorInvalidValue;
  });
}

} // namespace

musaError_t musaGraphCreate(musaGraph_t* graph, unsigned int flags) {
  return api<"musaGraphCreate">([&] {
    if (graph == nullptr || flags != 0) {
      return musaErrorInvalidValue;
    }
    Lock lock(engine().mutex);
    *graph = create_graph();
    return musaSuccess;
  });
}

musaError_t musaGraphDestroy(musaGraph_t graph) {
  return api<"musaGraphDestroy", kReleases>([&] {
    OwnedGraph destroyed; // destroyed after the lock is released
    return with_graph(graph, [&] {
      destroyed = withdraw_graph(graph);
      return musaSuccess;
    });
  });
}

musaError_t musaGraphClone(musaGraph_t* clone, musaGraph_t original) {
  return api<"musaGraphClone">([&] {
    return with_graph(original, [&] {
      if (clone == nullptr) {
        return musaErrorInvalidValue;
      }
      *clone = publish_graph(clone_graph(*original));
      return musaSuccess;
    });
  });
}

musaError_t musaGraphNodeFindInClone(musaGraphNode_t* node, musaGraphNode_t original, musaGraph_t clone) {
  return api<"musaGraphNodeFindInClone">([&] {
    return with_graph(clone, [&] {
      for (const auto& candidate : clone->nodes) {
        if (candidate->origin == original && node != nullptr) {
          *node = candidate.get();
          return musaSuccess;
        }
      }
      return musaErrorInvalidValue;
    });
  });
}

musaError_t musaGraphAddKernelNode(
    musaGraphNode_t* node, musaGraph_t graph, const musaGraphNode_t* dependencies, size_t count,
    const musaKernelNodeParams* parameters) {
  return api<"musaGraphAddKernelNode">([&] {
    Operation operation;
    const musaError_t status = kernel_operation(parameters, &operation);
    return status == musaSuccess ? add(node, graph, dependencies, count, std::move(operation)) : status;
  });
}

musaError_t musaGraphAddMemcpyNode(
    musaGraphNode_t* node, musaGraph_t graph, const musaGraphNode_t* dependencies, size_t count,
    const musaMemcpy3DParms* parameters) {
  return api<"musaGraphAddMemcpyNode">([&] {
    Operation operation;
    const musaError_t status = copy_operation(parameters, &operation);
    return status == musaSuccess ? add(node, graph, dependencies, count, std::move(operation)) : status;
  });
}

musaError_t musaGraphAddMemcpyNode1D(
    musaGraphNode_t* node, musaGraph_t graph, const musaGraphNode_t* dependencies, size_t count, void* dst,
    const void* src, size_t bytes, musaMemcpyKind kind) {
  return api<"musaGraphAddMemcpyNode1D">([&] {
    Operation operation;
    const musaError_t status = linear_operation(dst, src, bytes, kind, &operation);
    return status == musaSuccess ? add(node, graph, dependencies, count, std::move(operation)) : status;
  });
}

musaError_t musaGraphAddMemsetNode(
    musaGraphNode_t* node, musaGraph_t graph, const musaGraphNode_t* dependencies, size_t count,
    const musaMemsetParams* parameters) {
  return api<"musaGraphAddMemsetNode">([&] {
    Operation operation;
    const musaError_t status = fill_operation(parameters, &operation);
    return status == musaSuccess ? add(node, graph, dependencies, count, std::move(operation)) : status;
  });
}

musaError_t musaGraphAddHostNode(
    musaGraphNode_t* node, musaGraph_t graph, const musaGraphNode_t* dependencies, size_t count,
    const musaHostNodeParams* parameters) {
  return api<"musaGraphAddHostNode">([&] {
    Operation operation;
    const musaError_t status = host_operation(parameters, &operation);
    return status == musaSuccess ? add(node, graph, dependencies, count, std::move(operation)) : status;
  });
}

musaError_t musaGraphAddEventRecordNode(
    musaGraphNode_t* node, musaGraph_t graph, const musaGraphNode_t* dependencies, size_t count, musaEvent_t event) {
  return api<"musaGraphAddEventRecordNode">([&] {
    return resolve_event(event) != nullptr ? add(node, graph, dependencies, count, RecordOperation{event})
                                           : musaErrorInvalidValue;
  });
}

musaError_t musaGraphAddEventWaitNode(
    musaGraphNode_t* node, musaGraph_t graph, const musaGraphNode_t* dependencies, size_t count, musaEvent_t event) {
  return api<"musaGraphAddEventWaitNode">([&] {
    return resolve_event(event) != nullptr ? add(node, graph, dependencies, count, WaitOperation{event})
                                           : musaErrorInvalidValue;
  });
}

musaError_t musaGraphAddEmptyNode(
    musaGraphNode_t* node, musaGraph_t graph, const musaGraphNode_t* dependencies, size_t count) {
  return api<"musaGraphAddEmptyNode">([&] { return add(node, graph, dependencies, count, EmptyOperation{}); });
}

musaError_t musaGraphAddChildGraphNode(
    musaGraphNode_t* node, musaGraph_t graph, const musaGraphNode_t* dependencies, size_t count, musaGraph_t child) {
  return api<"musaGraphAddChildGraphNode">(
      [&] { return add(node, graph, dependencies, count, ChildGraphOperation{child}); });
}

musaError_t musaGraphAddDependencies(
    musaGraph_t graph, const musaGraphNode_t* from, const musaGraphNode_t* to, size_t count) {
  return api<"musaGraphAddDependencies">([&] {
    return with_graph(graph, [&] {
      for (size_t i = 0; i < count; ++i) {
        if (!is_node(from[i]) || !is_node(to[i]) || from[i]->graph != graph || to[i]->graph != graph ||
            from[i] == to[i]) {
          return musaErrorInvalidValue;
        }
        auto& dependencies = to[i]->dependencies;
        if (std::find(dependencies.begin(), dependencies.end(), from[i]) != dependencies.end()) {
          return musaErrorInvalidValue;
        }
        dependencies.push_back(from[i]);
      }
      return musaSuccess;
    });
  });
}

musaError_t musaGraphRemoveDependencies(
    musaGraph_t graph, const musaGraphNode_t* from, const musaGraphNode_t* to, size_t count) {
  return api<"musaGraphRemoveDependencies">([&] {
    return with_graph(graph, [&] {
      for (size_t i = 0; i < count; ++i) {
        if (!is_node(to[i]) || std::erase(to[i]->dependencies, from[i]) == 0) {
          return musaErrorInvalidValue;
        }
      }
      return musaSuccess;
    });
  });
}

musaError_t musaGraphDestroyNode(musaGraphNode_t node) {
  return api<"musaGraphDestroyNode", kReleases>([&] {
    std::unique_ptr<MUgraphNode_st> destroyed; // destroyed after the lock is released
    return with_node(node, [&] {
      destroyed = withdraw_node(node);
      return musaSuccess;
    });
  });
}

musaError_t musaGraphGetNodes(musaGraph_t graph, musaGraphNode_t* nodes, size_t* count) {
  return api<"musaGraphGetNodes">([&] {
    return with_graph(graph, [&] {
      if (count == nullptr) {
        return musaErrorInvalidValue;
      }
      std::vector<musaGraphNode_t> all;
      for (const auto& node : graph->nodes) {
        all.push_back(node.get());
      }
      fill_array(all, nodes, count);
      return musaSuccess;
    });
  });
}

musaError_t musaGraphGetRootNodes(musaGraph_t graph, musaGraphNode_t* nodes, size_t* count) {
  return api<"musaGraphGetRootNodes">([&] {
    return with_graph(graph, [&] {
      if (count == nullptr) {
        return musaErrorInvalidValue;
      }
      std::vector<musaGraphNode_t> roots;
      for (const auto& node : graph->nodes) {
        if (node->dependencies.empty()) {
          roots.push_back(node.get());
        }
      }
      fill_array(roots, nodes, count);
      return musaSuccess;
    });
  });
}

musaError_t musaGraphGetEdges(musaGraph_t graph, musaGraphNode_t* from, musaGraphNode_t* to, size_t* count) {
  return api<"musaGraphGetEdges">([&] {
    return with_graph(graph, [&] {
      if (count == nullptr || (from == nullptr) != (to == nullptr)) {
        return musaErrorInvalidValue;
      }
      std::vector<musaGraphNode_t> sources;
      std::vector<musaGraphNode_t> targets;
      for (const auto& node : graph->nodes) {
        for (musaGraphNode_t dependency : node->dependencies) {
          sources.push_back(dependency);
          targets.push_back(node.get());
        }
      }
      size_t capacity = *count;
      fill_array(sources, from, &capacity);
      fill_array(targets, to, count);
      return musaSuccess;
    });
  });
}

musaError_t musaGraphNodeGetType(musaGraphNode_t node, musaGraphNodeType* type) {
  return api<"musaGraphNodeGetType">([&] {
    return with_node(node, [&] {
      if (type == nullptr) {
        return musaErrorInvalidValue;
      }
      *type = node_type(node->operation);
      return musaSuccess;
    });
  });
}

musaError_t musaGraphNodeGetDependencies(musaGraphNode_t node, musaGraphNode_t* dependencies, size_t* count) {
  return api<"musaGraphNodeGetDependencies">([&] {
    return with_node(node, [&] {
      if (count == nullptr) {
        return musaErrorInvalidValue;
      }
      fill_array(node->dependencies, dependencies, count);
      return musaSuccess;
    });
  });
}

musaError_t musaGraphNodeGetDependentNodes(musaGraphNode_t node, musaGraphNode_t* dependents, size_t* count) {
  return api<"musaGraphNodeGetDependentNodes">([&] {
    return with_node(node, [&] {
      if (count == nullptr) {
        return musaErrorInvalidValue;
      }
      std::vector<musaGraphNode_t> found;
      for (const auto& other : node->graph->nodes) {
        if (std::find(other->dependencies.begin(), other->dependencies.end(), node) != other->dependencies.end()) {
          found.push_back(other.get());
        }
      }
      fill_array(found, dependents, count);
      return musaSuccess;
    });
  });
}

musaError_t musaGraphChildGraphNodeGetGraph(musaGraphNode_t node, musaGraph_t* graph) {
  return api<"musaGraphChildGraphNodeGetGraph">([&] {
    return with_node(node, [&] {
      if (graph == nullptr || !node->child) {
        return musaErrorInvalidValue;
      }
      *graph = node->child.get();
      return musaSuccess;
    });
  });
}

musaError_t musaGraphKernelNodeGetParams(musaGraphNode_t node, musaKernelNodeParams* parameters) {
  return api<"musaGraphKernelNodeGetParams">([&] {
    return with_operation<KernelOperation>(node, [&](KernelOperation& operation) {
      auto* launch = dynamic_cast<KernelLaunch*>(operation.launch.get());
      if (parameters == nullptr || launch == nullptr) {
        return musaErrorInvalidDeviceFunction; // a task of an emulated library, without parameters
      }
      *parameters = {};
      parameters->func = const_cast<void*>(launch->kernel().symbol);
      parameters->gridDim = launch->grid();
      parameters->blockDim = launch->block();
      parameters->sharedMemBytes = static_cast<unsigned>(launch->shared_bytes());
      parameters->kernelParams = launch->arguments();
      return musaSuccess;
    });
  });
}

musaError_t musaGraphKernelNodeSetParams(musaGraphNode_t node, const musaKernelNodeParams* parameters) {
  return api<"musaGraphKernelNodeSetParams">([&] {
    Operation operation;
    const musaError_t status = kernel_operation(parameters, &operation);
    return status == musaSuccess ? replace(node, operation) : status;
  });
}

musaError_t musaGraphMemcpyNodeGetParams(musaGraphNode_t node, musaMemcpy3DParms* parameters) {
  return api<"musaGraphMemcpyNodeGetParams">([&] {
    return with_operation<CopyOperation>(node, [&](const CopyOperation& copy) {
      if (parameters == nullptr) {
        return musaErrorInvalidValue;
      }
      *parameters = describe_copy(copy);
      return musaSuccess;
    });
  });
}

musaError_t musaGraphMemcpyNodeSetParams(musaGraphNode_t node, const musaMemcpy3DParms* parameters) {
  return api<"musaGraphMemcpyNodeSetParams">([&] {
    Operation operation;
    const musaError_t status = copy_operation(parameters, &operation);
    return status == musaSuccess ? replace(node, operation) : status;
  });
}

musaError_t musaGraphMemsetNodeGetParams(musaGraphNode_t node, musaMemsetParams* parameters) {
  return api<"musaGraphMemsetNodeGetParams">([&] {
    return with_operation<FillOperation>(node, [&](const FillOperation& fill) {
      if (parameters == nullptr) {
        return musaErrorInvalidValue;
      }
      *parameters = {fill.dst, fill.pitch, fill.value, fill.element, fill.width, fill.height};
      return musaSuccess;
    });
  });
}

musaError_t musaGraphMemsetNodeSetParams(musaGraphNode_t node, const musaMemsetParams* parameters) {
  return api<"musaGraphMemsetNodeSetParams">([&] {
    Operation operation;
    const musaError_t status = fill_operation(parameters, &operation);
    return status == musaSuccess ? replace(node, operation) : status;
  });
}

musaError_t musaGraphHostNodeGetParams(musaGraphNode_t node, musaHostNodeParams* parameters) {
  return api<"musaGraphHostNodeGetParams">([&] {
    return with_operation<HostOperation>(node, [&](const HostOperation& host) {
      if (parameters == nullptr) {
        return musaErrorInvalidValue;
      }
      *parameters = {host.function, host.data};
      return musaSuccess;
    });
  });
}

musaError_t musaGraphHostNodeSetParams(musaGraphNode_t node, const musaHostNodeParams* parameters) {
  return api<"musaGraphHostNodeSetParams">([&] {
    Operation operation;
    const musaError_t status = host_operation(parameters, &operation);
    return status == musaSuccess ? replace(node, operation) : status;
  });
}

musaError_t musaGraphEventRecordNodeGetEvent(musaGraphNode_t node, musaEvent_t* event) {
  return api<"musaGraphEventRecordNodeGetEvent">([&] {
    return with_operation<RecordOperation>(node, [&](const RecordOperation& record) {
      if (event == nullptr) {
        return musaErrorInvalidValue;
      }
      *event = record.event;
      return musaSuccess;
    });
  });
}

musaError_t musaGraphEventRecordNodeSetEvent(musaGraphNode_t node, musaEvent_t event) {
  return api<"musaGraphEventRecordNodeSetEvent">([&] {
    Operation operation = RecordOperation{event};
    return resolve_event(event) != nullptr ? replace(node, operation) : musaErrorInvalidValue;
  });
}

musaError_t musaGraphEventWaitNodeGetEvent(musaGraphNode_t node, musaEvent_t* event) {
  return api<"musaGraphEventWaitNodeGetEvent">([&] {
    return with_operation<WaitOperation>(node, [&](const WaitOperation& wait) {
      if (event == nullptr) {
        return musaErrorInvalidValue;
      }
      *event = wait.event;
      return musaSuccess;
    });
  });
}

musaError_t musaGraphEventWaitNodeSetEvent(musaGraphNode_t node, musaEvent_t event) {
  return api<"musaGraphEventWaitNodeSetEvent">([&] {
    Operation operation = WaitOperation{event};
    return resolve_event(event) != nullptr ? replace(node, operation) : musaErrorInvalidValue;
  });
}

musaError_t musaGraphDebugDotPrint(musaGraph_t graph, const char* path, unsigned int flags) {
  return api<"musaGraphDebugDotPrint">([&] { return print_dot(graph, path, flags); });
}

musaError_t musaGraphInstantiate(
    musaGraphExec_t* exec, musaGraph_t graph, musaGraphNode_t* error_node, char* log, size_t log_bytes) {
  return api<"musaGraphInstantiate", kUnsafeInCapture>([&] {
    musaGraphNode_t culprit = nullptr;
    const musaError_t status = make_executable(exec, graph, 0, &culprit);
    if (error_node != nullptr) {
      *error_node = culprit;
    }
    if (log != nullptr && log_bytes != 0) {
      std::snprintf(log, log_bytes, "%s", culprit != nullptr ? "the dependencies of the node form a cycle" : "");
    }
    return status;
  });
}

musaError_t musaGraphInstantiateWithFlags(musaGraphExec_t* exec, musaGraph_t graph, unsigned long long flags) {
  return api<"musaGraphInstantiateWithFlags", kUnsafeInCapture>([&] {
    musaGraphNode_t culprit = nullptr;
    return make_executable(exec, graph, flags, &culprit);
  });
}

musaError_t musaGraphInstantiateWithParams(
    musaGraphExec_t* exec, musaGraph_t graph, musaGraphInstantiateParams* parameters) {
  return api<"musaGraphInstantiateWithParams", kUnsafeInCapture>([&] {
    if (parameters == nullptr) {
      return musaErrorInvalidValue;
    }
    parameters->errNode_out = nullptr;
    const musaError_t status = make_executable(exec, graph, parameters->flags, &parameters->errNode_out);
    parameters->result_out = status == musaSuccess ? musaGraphInstantiateSuccess
        : parameters->errNode_out != nullptr       ? musaGraphInstantiateInvalidStructure
                                                   : musaGraphInstantiateError;
    return status;
  });
}

musaError_t musaGraphExecDestroy(musaGraphExec_t exec) {
  return api<"musaGraphExecDestroy", kReleases | kUnsafeInCapture>([&] {
    OwnedExecutable destroyed; // destroyed after the lock is released
    Lock lock(engine().mutex);
    if (!is_executable(exec)) {
      return musaErrorInvalidValue;
    }
    destroyed = withdraw_executable(exec);
    return musaSuccess;
  });
}

musaError_t musaGraphExecGetFlags(musaGraphExec_t exec, unsigned long long* flags) {
  return api<"musaGraphExecGetFlags">([&] {
    Lock lock(engine().mutex);
    if (!is_executable(exec) || flags == nullptr) {
      return musaErrorInvalidValue;
    }
    *flags = exec->flags;
    return musaSuccess;
  });
}

musaError_t musaGraphUpload(musaGraphExec_t exec, musaStream_t stream) {
  return api<"musaGraphUpload">([&] {
    return with_stream(stream, [&](Stream& found) {
      {
        Lock lock(engine().mutex);
        if (!is_executable(exec)) {
          return musaErrorInvalidValue;
        }
      }
      return submit(found, EmptyOperation{}); // an upload has no effect besides its place in the stream's order
    });
  });
}

musaError_t musaGraphLaunch(musaGraphExec_t exec, musaStream_t stream) {
  return api<"musaGraphLaunch">(
      [&] { return with_stream(stream, [&](Stream& found) { return launch_graph(exec, found); }); });
}

musaError_t musaGraphExecUpdate(musaGraphExec_t exec, musaGraph_t graph, musaGraphExecUpdateResultInfo* result) {
  return api<"musaGraphExecUpdate">([&] {
    MUgraphExec_st replaced; // destroyed after the lock is released
    return with_graph(graph, [&] {
      if (!is_executable(exec) || result == nullptr) {
        return musaErrorInvalidValue;
      }
      return update_executable(*exec, graph, result, &replaced);
    });
  });
}

musaError_t musaGraphExecKernelNodeSetParams(
    musaGraphExec_t exec, musaGraphNode_t node, const musaKernelNodeParams* parameters) {
  return api<"musaGraphExecKernelNodeSetParams">([&] {
    Operation operation;
    const musaError_t status = kernel_operation(parameters, &operation);
    return status == musaSuccess ? replace_executable(exec, node, operation) : status;
  });
}

musaError_t musaGraphExecMemcpyNodeSetParams(
    musaGraphExec_t exec, musaGraphNode_t node, const musaMemcpy3DParms* parameters) {
  return api<"musaGraphExecMemcpyNodeSetParams">([&] {
    Operation operation;
    const musaError_t status = copy_operation(parameters, &operation);
    return status == musaSuccess ? replace_executable(exec, node, operation) : status;
  });
}

musaError_t musaGraphExecMemcpyNodeSetParams1D(
    musaGraphExec_t exec, musaGraphNode_t node, void* dst, const void* src, size_t bytes, musaMemcpyKind kind) {
  return api<"musaGraphExecMemcpyNodeSetParams1D">([&] {
    Operation operation;
    const musaError_t status = linear_operation(dst, src, bytes, kind, &operation);
    return status == musaSuccess ? replace_executable(exec, node, operation) : status;
  });
}

musaError_t musaGraphExecMemsetNodeSetParams(
    musaGraphExec_t exec, musaGraphNode_t node, const musaMemsetParams* parameters) {
  return api<"musaGraphExecMemsetNodeSetParams">([&] {
    Operation operation;
    const musaError_t status = fill_operation(parameters, &operation);
    return status == musaSuccess ? replace_executable(exec, node, operation) : status;
  });
}

musaError_t musaGraphExecHostNodeSetParams(
    musaGraphExec_t exec, musaGraphNode_t node, const musaHostNodeParams* parameters) {
  return api<"musaGraphExecHostNodeSetParams">([&] {
    Operation operation;
    const musaError_t status = host_operation(parameters, &operation);
    return status == musaSuccess ? replace_executable(exec, node, operation) : status;
  });
}

musaError_t musaGraphNodeSetEnabled(musaGraphExec_t exec, musaGraphNode_t node, unsigned int enabled) {
  return api<"musaGraphNodeSetEnabled">([&] {
    Lock lock(engine().mutex);
    if (!is_executable(exec)) {
      return musaErrorInvalidValue;
    }
    ExecutableNode* entry = find_entry(writable_plan(*exec), node);
    // Like the driver, supports disabling only for these kinds.
    if (entry == nullptr ||
        (entry->type != musaGraphNodeTypeKernel && entry->type != musaGraphNodeTypeMemcpy &&
         entry->type != musaGraphNodeTypeMemset)) {
      return musaErrorInvalidValue;
    }
    entry->enabled = enabled != 0;
    return musaSuccess;
  });
}

musaError_t musaGraphNodeGetEnabled(musaGraphExec_t exec, musaGraphNode_t node, unsigned int* enabled) {
  return api<"musaGraphNodeGetEnabled">([&] {
    Lock lock(engine().mutex);
    if (!is_executable(exec) || enabled == nullptr) {
      return musaErrorInvalidValue;
    }
    const ExecutableNode* entry = find_entry(*exec->plan, node);
    if (entry == nullptr) {
      return musaErrorInvalidValue;
    }
    *enabled = entry->enabled ? 1 : 0;
    return musaSuccess;
  });
}
