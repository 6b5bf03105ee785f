# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Generates the Python code that launches Inductor's Triton kernels.

torch's own scheduling generates the kernels. Two things torch does only for the GPUs in `GPU_TYPES`, so these
classes do them for musa:

* Device guards: a kernel is loaded into the context of the current device, and measured on its stream.
* Alignment: kernels load 16 bytes at a time from inputs that the graph does not write. An input at another
  address is copied before the first kernel.
"""

from torch._inductor.codegen.wrapper import (
    EnterDeviceContextManagerLine,
    ExitDeviceContextManagerLine,
    KernelCallLine,
    SubgraphPythonWrapperCodegen,
)
from torch._inductor.virtualized import V

from .python_wrapper import MusaLines, MusaPythonWrapper


class _EnterDeviceLine(EnterDeviceContextManagerLine):
    """Enters the device guard. torch's line additionally sets the device inside it."""

    def codegen(self, code):
        code.writeline(f"with {V.graph.device_ops.device_guard(self.device_idx)}:")
        code.do_indent()


class _SelectsDevice:
    """Emits device guards into the generated Python code of a graph or subgraph."""

    _is_guarded_whole = False
    aligned_inputs = ()

    def run_wrapper_ir_passes(self, is_inference):
        super().run_wrapper_ir_passes(is_inference)
        # Runs after torch's passes, which merge and move allocation lines.
        calls = [
            line for line in self.lines if isinstance(line, KernelCallLine) and line.device.type == "musa"
        ]
        read = {argument for call in calls for argument in call.call_args if isinstance(argument, str)}
        self.lines[:0] = [f"{name} = aligned_musa({name})" for name in self.aligned_inputs if name in read]
        devices = {call.device.index for call in calls}
        # One guard for the whole function instead of one per kernel. Not if nodes are on several
        # devices: operators that receive only the device type allocate on the current device.
        if len(devices) == 1 and devices >= set(V.graph.device_idxs):
            self._is_guarded_whole = True
            self.lines.insert(0, _EnterDeviceLine(devices.pop(), None))
            self.lines.append(ExitDeviceContextManagerLine())

    def _generate_kernel_call_helper(self, kernel_name, call_args, *, device=None, **arguments):
        device = device or V.graph.get_current_device_or_throw()
        if device.type != "musa" or self._is_guarded_whole:
            super()._generate_kernel_call_helper(kernel_name, call_args, device=device, **arguments)
            return
        self.writeline(f"with {V.graph.device_ops.device_guard(device.index)}:")
        with self.wrapper_call.indent():
            super()._generate_kernel_call_helper(kernel_name, call_args, device=device, **arguments)


class _MusaTritonSubgraphWrapper(_SelectsDevice, MusaLines, SubgraphPythonWrapperCodegen):
    """Generates the function of a subgraph, such as a branch of `torch.cond`."""


class MusaTritonWrapper(_SelectsDevice, MusaPythonWrapper):
    """Generates the Python module of a graph with Triton kernels."""

    subgraph_wrapper = _MusaTritonSubgraphWrapper

    def push_codegened_graph(self, graph):
        if not self.codegened_graph_stack:  # the module's graph, whose kernels torch generates next
            self.aligned_inputs = [
                name
                for name, value in graph.graph_inputs.items()
                if name in graph.unaligned_buffers
                and name not in graph.mutated_inputs
                and value.get_device().type == "musa"
            ]
            graph.unaligned_buffers -= set(self.aligned_inputs)
        super().push_codegened_graph(graph)

    def write_header(self):
        super().write_header()
        self.imports.writeline("from musa_compile.kernels import aligned_musa")
