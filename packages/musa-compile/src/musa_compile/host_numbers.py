# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Numbers in host memory, tensors of no dimensions, as operands of operators on musa.

The result of such an operator is on musa. Inductor computes on the device of the first operand that is on one
of its own GPUs (`is_gpu`), or else of the first operand, which may be the number. This pass inserts a node on
musa that reads the number.
"""

import torch
from torch._inductor import ir, lowering
from torch._inductor.virtualized import V

from . import kernels  # noqa: F401 - its library defines torch.ops.musa_compile
from .nodes import call, is_on_musa

_on_device = torch.ops.musa_compile.on_device.default


def read_on_device(graph):
    """Replaces the numbers among the operands.

    Operators that Inductor calls take them as in eager mode, so they stay as they are.

    Args:
        graph (torch.fx.Graph): modified in place.
    """
    numbers = {}
    for node in list(graph.nodes):
        device = _device_of_loop(node)
        if device is None:
            continue
        for operand in node.all_input_nodes:
            if not _is_number_on_host(operand):
                continue
            if (operand, device) not in numbers:
                with graph.inserting_before(node):
                    numbers[operand, device] = call(graph, _on_device, operand, device)
            node.replace_input_with(operand, numbers[operand, device])


def _device_of_loop(node):
    """The musa device of the result, if Inductor generates a loop that reads tensors on musa, or None."""
    if node.target not in lowering.lowerings or node.target in lowering.fallbacks:
        return None
    results = node.meta.get("val")
    result = results[0] if isinstance(results, (tuple, list)) and results else results
    is_computed = isinstance(result, torch.Tensor) and any(is_on_musa(each) for each in node.all_input_nodes)
    return result.device if is_computed and result.device.type == "musa" else None


def _is_number_on_host(node):
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.device.type == "cpu" and value.dim() == 0


@torch.library.register_fake("musa_compile::on_device")
def _fake_on_device(x, device):
    return torch.empty_like(x, device=device)


@lowering.register_lowering(_on_device, type_promotion_kind=None)
def _lower_on_device(x, device):
    """A C++ kernel reads the number where it is. Inductor passes it to a Triton kernel by value."""
    if isinstance(x.data, ir.BaseView):
        x = ir.ExternKernel.copy_input(x)
    x.realize()
    V.graph.zero_dim_cpu_tensor_list.add(x.get_name())
    V.graph.unaligned_buffers.add(x.get_name())  # the number is no multiple of 16, as an address would be
    return ir.Pointwise.create(device=device, dtype=x.get_dtype(), inner_fn=x.make_loader(), ranges=[])
