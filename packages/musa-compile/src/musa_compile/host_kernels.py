# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Inductor's C++ kernels on musa memory that the host can address: scheduling of kernels, and the generated
wrapper.

Kernels wait for the current stream of their device and run on the calling thread, as torch's CPU kernels do
on musa tensors. Matrix products, convolutions, attention and every other operator that Inductor does not
generate go through the dispatcher.
"""

import contextlib
import dataclasses

import torch
from torch._inductor.codegen.cpp import CppScheduling
from torch._inductor.codegen.wrapper import (
    EnterCudaStreamContextLine,
    PythonWrapperCodegen,
    SubgraphPythonWrapperCodegen,
)
from torch._inductor.virtualized import V

_HOST = torch.device("cpu")


class MusaScheduling(CppScheduling):
    """Generates C++ kernels that know the device they belong to.

    While a kernel is generated the CPU is the graph's current device: torch asks that device who generates
    code (`get_current_backend`), and takes every device that it does not know for one of Triton's.
    """

    def __init__(self, scheduler):
        super().__init__(scheduler)
        self._device = None  # of the kernels that are being generated
        self._orders_streams = None
        if scheduler is not None:
            # torch reorders the loops of every device but the CPU, and computes with their bounds as
            # Triton's scheduling has them, where C++ has tuples. It asks these methods before; set on this
            # object, they last as long as one compilation.
            scheduler.shared_data_after_inverting_indexing = lambda node1, node2: -1
            scheduler.shared_data_after_reordering_loop = lambda node1, node2: -1
            scheduler._try_reindex_pointwise_for_reduction = lambda node1, node2: False

    @contextlib.contextmanager
    def _on_host(self):
        device = V.graph.current_device
        if device is not None and device.type == "musa":
            self._device = device
        with V.graph.set_current_device(_HOST):
            yield

    def codegen_node(self, node):
        with self._on_host():
            super().codegen_node(node)

    def codegen_template(self, template_node, epilogue_nodes, prologue_nodes):
        with self._on_host():
            super().codegen_template(template_node, epilogue_nodes, prologue_nodes)

    def flush(self):
        with self._on_host():
            super().flush()

    def ready_to_flush(self):
        # torch collects C++ kernels, and flushes them before nodes of other kinds that have a device.
        # Events and synchronisation have none, so in a graph with such nodes each kernel is written at
        # once.
        return super().ready_to_flush() or self._has_nodes_without_device()

    def _has_nodes_without_device(self):
        if self._orders_streams is None:
            self._orders_streams = any(
                node.is_extern() and node.get_device() is None for node in self.scheduler.nodes
            )
        return self._orders_streams

    def define_kernel(self, src_code, nodes, kernel_args=None):
        # Kernels of a graph are shared by their source, also with those of CPU tensors, and each waits for
        # the streams of one device.
        index = self._device.index if self._device is not None and self._device.index is not None else 0
        with V.graph.wrapper_code.kernels_of(index):
            return super().define_kernel(f"// musa:{index}\n{src_code}", nodes, kernel_args)


@dataclasses.dataclass
class _EnterStreamLine(EnterCudaStreamContextLine):
    """Enters a stream by the number of the object that the program made. torch names streams where it enters
    a device guard, which it writes for its own devices only.
    """

    stream_object: int = 0

    def codegen(self, code):
        stream = f"get_external_object_by_index({self.stream_object})"
        code.writeline(f"with {stream if self.stream_idx else 'contextlib.nullcontext()'}:")
        code.do_indent()


class KernelDevice:
    """Part of a wrapper: the device of the kernels that are being defined."""

    _kernel_device = None

    @contextlib.contextmanager
    def kernels_of(self, index):
        """Kernels that are defined within it belong to the musa device of that index."""
        self._kernel_device = index
        try:
            yield
        finally:
            self._kernel_device = None


class _ForMusa(KernelDevice):
    """Additions to the generated Python of a graph, or of a part of one."""

    def define_kernel(self, kernel_name, kernel_body, metadata=None, gpu=True, cpp_definition=None):
        if self._kernel_device is not None:
            call = f"host_kernel({kernel_name!r}, {self._kernel_device}, async_compile, "
            kernel_body = kernel_body.replace("async_compile.cpp_pybinding(", call, 1)
        super().define_kernel(kernel_name, kernel_body, metadata, gpu, cpp_definition)

    def codegen_cuda_stream_enter(self, stream_idx):
        line = _EnterStreamLine(stream_idx)
        if stream_idx:
            self.imports.writeline(
                "from torch._dynamo.graph_bytecode_inputs import get_external_object_by_index"
            )
            line.stream_object = V.graph.scheduler.stream_idx_to_user_obj_idx[stream_idx]
        else:
            self.imports.writeline("import contextlib")
        self.writeline(line)
        return line

    def make_allocation(self, name, device, dtype, shape, stride, allocation_shape=None, is_pinned=False):
        if device.type != "musa" or torch._inductor.config.test_configs.track_memory_lifecycle:
            return super().make_allocation(name, device, dtype, shape, stride, allocation_shape, is_pinned)
        # With the index of the device: torch's own line names the type alone, which is the current device.
        wanted = self.codegen_python_shape_tuple(shape)
        allocated = wanted if allocation_shape is None else self.codegen_python_shape_tuple(allocation_shape)
        strides = self.codegen_python_shape_tuple(stride)
        line = f"{name} = empty_strided_musa({allocated}, {strides}, {dtype}, {device.index or 0})"
        return line if wanted == allocated else f"{line}.as_strided({wanted}, {strides})"


class MusaWrapper(_ForMusa, PythonWrapperCodegen):
    """The Python module that is generated for a graph."""

    @staticmethod
    def create(is_subgraph, subgraph_name, parent_wrapper, partition_signatures=None):
        if is_subgraph:
            return _MusaSubgraphWrapper(subgraph_name, parent_wrapper, partition_signatures)
        return MusaWrapper()

    def write_header(self):
        super().write_header()
        self.imports.writeline("from musa_compile.kernels import empty_strided_musa, host_kernel")

    def generate_end(self, result):
        super().generate_end(result)
        if not self._is_graphed():
            return
        graph = V.graph
        mutated = [at for at, name in enumerate(graph.graph_input_names) if name in graph.mutated_inputs]
        # torch keeps generated modules until the process ends. So the module holds no graphs: each compiled
        # function that reads its attribute `call` gets graphs of its own, which are freed with the function.
        result.splice(
            f"""
            from musa_compile.graphs import GraphedCall
            call_without_graphs = call
            del call

            def __getattr__(name):
                if name == "call":
                    return GraphedCall(call_without_graphs, {mutated!r})
                raise AttributeError(name)
            """
        )

    def add_benchmark_harness(self, output):
        if not self._is_graphed():  # it calls a global `call`
            super().add_benchmark_harness(output)

    @staticmethod
    def _is_graphed():
        graph = V.graph
        return torch._inductor.config.triton.cudagraphs and not graph.aot_mode and graph.device_type == "musa"


class _MusaSubgraphWrapper(_ForMusa, SubgraphPythonWrapperCodegen):
    """The part for a graph within the graph, such as a branch of `torch.cond`."""
