# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Inductor's C++ kernels on musa memory that the host can address: scheduling of kernels, and the wrapper
code.

Kernels wait for the current stream of their device and run on the calling thread, as torch's CPU kernels do
on musa tensors. Matrix products, convolutions, attention and all other operators that Inductor does not
generate are called through the dispatcher.
"""

import contextlib

import torch
from torch._inductor.codegen.cpp import CppScheduling
from torch._inductor.codegen.wrapper import SubgraphPythonWrapperCodegen
from torch._inductor.virtualized import V

from .invariant_loads import KernelProxy
from .python_wrapper import MusaLines, MusaPythonWrapper

_HOST = torch.device("cpu")


class MusaScheduling(CppScheduling):
    """Generates C++ kernels with the index of their device.

    While a kernel is generated, the graph's current device is the CPU: torch selects the code generator by
    that device (`get_current_backend`), and uses Triton's for every device that it does not list.
    """

    kernel_proxy_cls = KernelProxy

    def __init__(self, scheduler):
        super().__init__(scheduler)
        self._device = None  # device of the kernels that are being generated
        self._orders_streams = None
        if scheduler is not None:
            # For every device except the CPU torch reorders loops, assuming the loop bounds of
            # Triton's scheduling, while C++ has tuples. Overriding these methods prevents it; set
            # on this object, the override lasts for one compilation.
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
        # torch collects C++ kernels and flushes them before nodes of other kinds that have a
        # device. Events and synchronization have none, so in graphs with such nodes each kernel is
        # written immediately.
        return super().ready_to_flush() or self._has_nodes_without_device()

    def _has_nodes_without_device(self):
        if self._orders_streams is None:
            self._orders_streams = any(
                node.is_extern() and node.get_device() is None for node in self.scheduler.nodes
            )
        return self._orders_streams

    def define_kernel(self, src_code, nodes, kernel_args=None):
        # Kernels of a graph, including those of CPU tensors, are shared by source code, but each
        # waits for the streams of one device.
        index = self._device.index if self._device is not None and self._device.index is not None else 0
        with V.graph.wrapper_code.kernels_of(index):
            return super().define_kernel(f"// musa:{index}\n{src_code}", nodes, kernel_args)


class KernelDevice:
    """Mixin of wrappers: tracks the device of the kernels being defined."""

    _kernel_device = None

    @contextlib.contextmanager
    def kernels_of(self, index):
        """Context in which defined kernels belong to the musa device of this index."""
        self._kernel_device = index
        try:
            yield
        finally:
            self._kernel_device = None


class _DefinesHostKernels(KernelDevice):
    """Defines kernels in the generated Python code of a graph or subgraph."""

    def define_kernel(self, kernel_name, kernel_body, metadata=None, gpu=True, cpp_definition=None):
        if self._kernel_device is not None:
            call = f"host_kernel({kernel_name!r}, {self._kernel_device}, async_compile, "
            kernel_body = kernel_body.replace("async_compile.cpp_pybinding(", call, 1)
        super().define_kernel(kernel_name, kernel_body, metadata, gpu, cpp_definition)


class _MusaSubgraphWrapper(_DefinesHostKernels, MusaLines, SubgraphPythonWrapperCodegen):
    """Generates the function of a subgraph, such as a branch of `torch.cond`."""


class MusaWrapper(_DefinesHostKernels, MusaPythonWrapper):
    """Generates the Python module of a graph with C++ kernels."""

    subgraph_wrapper = _MusaSubgraphWrapper

    def write_header(self):
        super().write_header()
        self.imports.writeline("from musa_compile.kernels import host_kernel")
