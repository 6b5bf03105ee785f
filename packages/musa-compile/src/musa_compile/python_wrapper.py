# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Generates the Python module of a graph with musa tensors, for every kernel generator."""

import dataclasses

import torch
from torch._inductor.codegen.wrapper import PythonWrapperCodegen
from torch._inductor.virtualized import V

from . import _compat


@dataclasses.dataclass
class _EnterStreamLine(_compat.enter_stream_line()):
    """Enters a stream by the number of the object that the program made. torch names streams where it enters
    a device guard, which it writes for its own devices only.
    """

    stream_object: int = 0

    def codegen(self, code):
        stream = f"get_external_object_by_index({self.stream_object})"
        code.writeline(f"with {stream if self.stream_idx else 'contextlib.nullcontext()'}:")
        code.do_indent()


# The function that calls a product, by its name in torch's lines, and options of the call that it implies.
_PRODUCTS = {
    "extern_kernels.mm": ("mm_musa", set()),
    "extern_kernels.addmm": ("addmm_musa", {"alpha=1", "beta=1"}),
    "extern_kernels.bmm": ("bmm_musa", set()),
}


class MusaLines:
    """Generates Python lines for musa in the function of a graph or subgraph."""

    def _generate_extern_kernel_out_helper(self, kernel, out, out_view, args, device, *rest, **options):
        function, implied = _PRODUCTS.get(kernel, (None, set()))
        tensors = [argument for argument in args if argument not in implied]
        is_printed = int(torch._inductor.config.aot_inductor.debug_intermediate_value_printer) != 0
        if device != "musa" or function is None or is_printed or any("=" in each for each in tensors):
            super()._generate_extern_kernel_out_helper(kernel, out, out_view, args, device, *rest, **options)
        else:
            self.writeline(f"{function}({', '.join([*tensors, out_view or out])})")

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
        # Includes the device index: torch's own line passes only the type, which means the current
        # device.
        wanted = self.codegen_python_shape_tuple(shape)
        allocated = wanted if allocation_shape is None else self.codegen_python_shape_tuple(allocation_shape)
        strides = self.codegen_python_shape_tuple(stride)
        line = f"{name} = empty_strided_musa({allocated}, {strides}, {dtype}, {device.index or 0})"
        return line if wanted == allocated else f"{line}.as_strided({wanted}, {strides})"


class MusaPythonWrapper(MusaLines, PythonWrapperCodegen):
    """Generates the Python module of a graph.

    Attributes:
        subgraph_wrapper (type): set by subclasses: the wrapper for subgraphs.
    """

    @classmethod
    def create(cls, is_subgraph, subgraph_name, parent_wrapper, partition_signatures=None):
        if is_subgraph:
            return cls.subgraph_wrapper(subgraph_name, parent_wrapper, partition_signatures)
        return cls()

    def write_header(self):
        super().write_header()
        self.imports.writeline(
            "from musa_compile.kernels import addmm_musa, bmm_musa, empty_strided_musa, mm_musa"
        )

    def generate_end(self, result):
        super().generate_end(result)
        if not self._is_graphed():
            return
        graph = V.graph
        mutated = [at for at, name in enumerate(graph.graph_input_names) if name in graph.mutated_inputs]
        reads_host = "cpu" in graph.device_types
        # torch keeps generated modules until the process exits, so the module must not own graphs:
        # each compiled function that reads its attribute `call` gets its own graphs, which are
        # freed with the function.
        result.splice(
            f"""
            from musa_compile.graphs import GraphedCall
            call_without_graphs = call
            del call

            def __getattr__(name):
                if name == "call":
                    return GraphedCall(call_without_graphs, {mutated!r}, {reads_host!r})
                raise AttributeError(name)
            """
        )

    def add_benchmark_harness(self, output):
        if not self._is_graphed():  # the harness calls a global `call`
            super().add_benchmark_harness(output)

    @staticmethod
    def _is_graphed():
        graph = V.graph
        return torch._inductor.config.triton.cudagraphs and not graph.aot_mode and graph.device_type == "musa"
