# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Inductor's C++ kernels on musa memory that the host can address: scheduling of kernels, and the generated
wrapper.

Kernels wait for the current stream of their device and run on the calling thread, as torch's CPU kernels do
on musa tensors. Matrix products, convolutions, attention and every other operator that Inductor does not
generate go through the dispatcher.
"""

import contextlib

import torch
from torch._inductor.codegen.cpp import CppScheduling
from torch._inductor.codegen.wrapper import SubgraphPythonWrapperCodegen
from torch._inductor.virtualized import V

from .python_wrapper import MusaLines, MusaPythonWrapper

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


class _DefinesHostKernels(KernelDevice):
    """Definitions of kernels in the generated Python of a graph, or of a part of one."""

    def define_kernel(self, kernel_name, kernel_body, metadata=None, gpu=True, cpp_definition=None):
        if self._kernel_device is not None:
            call = f"host_kernel({kernel_name!r}, {self._kernel_device}, async_compile, "
            kernel_body = kernel_body.replace("async_compile.cpp_pybinding(", call, 1)
        super().define_kernel(kernel_name, kernel_body, metadata, gpu, cpp_definition)


class _MusaSubgraphWrapper(_DefinesHostKernels, MusaLines, SubgraphPythonWrapperCodegen):
    """Generates the function of a graph within the graph, such as a branch of `torch.cond`."""


class MusaWrapper(_DefinesHostKernels, MusaPythonWrapper):
    """Generates the Python module of a graph whose kernels are C++."""

    subgraph_wrapper = _MusaSubgraphWrapper

    def write_header(self):
        super().write_header()
        self.imports.writeline("from musa_compile.kernels import host_kernel")
