// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/graph.h"
#include "engine/graph_launch.h"

#include <algorithm>

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

musaError_t linear_operation(void* dst, const void* src, size_t bytes, musaMemcpyKind kind, Operation* operation) {
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

// The old operation is destroyed after the lock is released.
musaError_t replace_kernel(Operation& place, Operation& operation) {
  if (!std::holds_alternative<KernelOperation>(place)) {
    return musaErrorInvalidValue;
  }
  std::swap(place, operation);
  return musaSuccess;
}

musaError_t make_executable(musaGraphExec_t* exec, musaGraph_t graph) {
  return with_graph(graph, [&] {
    if (exec == nullptr) {
      return musaErrorInvalidValue;
    }
    *exec = instantiate(*graph);
    return musaSuccess;
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

musaError_t musaGraphAddChildGraphNode(
    musaGraphNode_t* node, musaGraph_t graph, const musaGraphNode_t* dependencies, size_t count, musaGraph_t child) {
  return api<"musaGraphAddChildGraphNode">(
      [&] { return add(node, graph, dependencies, count, ChildGraphOperation{child}); });
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

musaError_t musaGraphKernelNodeGetParams(musaGraphNode_t node, musaKernelNodeParams* parameters) {
  return api<"musaGraphKernelNodeGetParams">([&] {
    return with_node(node, [&] {
      const auto* operation = std::get_if<KernelOperation>(&node->operation);
      if (operation == nullptr) {
        return musaErrorInvalidValue;
      }
      auto* launch = dynamic_cast<KernelLaunch*>(operation->launch.get());
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
    return status != musaSuccess ? status : with_node(node, [&] { return replace_kernel(node->operation, operation); });
  });
}

musaError_t musaGraphDebugDotPrint(musaGraph_t graph, const char* path, unsigned int flags) {
  return api<"musaGraphDebugDotPrint">([&] { return print_dot(graph, path, flags); });
}

// Graphs have no cycles, because a new node depends on earlier ones. So there is no error that belongs to a node.
musaError_t musaGraphInstantiate(
    musaGraphExec_t* exec, musaGraph_t graph, musaGraphNode_t* error_node, char* log, size_t log_bytes) {
  return api<"musaGraphInstantiate", kUnsafeInCapture>([&] {
    if (error_node != nullptr) {
      *error_node = nullptr;
    }
    if (log != nullptr && log_bytes != 0) {
      *log = '\0';
    }
    return make_executable(exec, graph);
  });
}

musaError_t musaGraphInstantiateWithFlags(musaGraphExec_t* exec, musaGraph_t graph, unsigned long long) {
  return api<"musaGraphInstantiateWithFlags", kUnsafeInCapture>([&] { return make_executable(exec, graph); });
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
    if (const musaError_t status = kernel_operation(parameters, &operation); status != musaSuccess) {
      return status;
    }
    Lock lock(engine().mutex);
    if (!is_executable(exec)) {
      return musaErrorInvalidValue;
    }
    Plan& plan = writable_plan(*exec);
    const auto entry =
        std::find_if(plan.begin(), plan.end(), [node](const ExecutableNode& other) { return other.origin == node; });
    return entry != plan.end() ? replace_kernel(entry->operation, operation) : musaErrorInvalidValue;
  });
}
