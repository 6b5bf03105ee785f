# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Values whose memory a program reads by the strides of eager mode.

A pass may store a value in another order, and the values that are computed from it follow. Inductor restores
the strides of results that the program gets. An operator such as `as_strided` reads memory by strides that
are part of the graph; its operand must have the strides that eager mode gives it.
"""

import operator

import torch
from torch._inductor import inductor_prims as prims
from torch._inductor.utils import is_view as returns_view
from torch._library.utils import get_layout_constraint_tag

from .nodes import call, is_on_musa

_aten = torch.ops.aten

# torch's operators, which have no tag for it. Operators of other libraries have a layout constraint.
_READERS = {
    _aten.as_strided.default,
    _aten.as_strided_.default,
    _aten.as_strided_copy.default,
    _aten.as_strided_scatter.default,
    _aten.resize.default,
    _aten.resize_.default,
    _aten.resize_as.default,
    _aten.resize_as_.default,
    _aten.set_.source_Storage_storage_offset,
    _aten.view.dtype,
    _aten.view_as_complex.default,
}


def keep(graph):
    """Inserts nodes that keep the strides of values that the graph reads by strides. Runs before the passes.

    A value with strides that depend on symbolic sizes stays as it is; passes do not change the order of such
    values.

    Args:
        graph (torch.fx.Graph): modified in place.
    """
    owners = (
        _owner_of_memory(operand)
        for node in graph.nodes
        if _reads_strides(node.target)
        for operand in node.all_input_nodes
    )
    for node in dict.fromkeys(owners):
        if node.op != "call_function" or not is_on_musa(node):
            continue
        strides = list(node.meta["val"].stride())
        if all(isinstance(stride, int) for stride in strides):
            with graph.inserting_after(node):
                kept = call(graph, prims.force_stride_order, node, strides)
            # Inductor does not copy a value that is in this order, so every user gets this node.
            node.replace_all_uses_with(kept, lambda user, kept=kept: user is not kept)


def are_kept(node):
    """Whether the value has the strides of eager mode after all passes."""
    return any(user.target is prims.force_stride_order for user in node.users)


def is_view(target):
    """Whether the value of such a node is a view of its first operand, or a part of one."""
    return target is operator.getitem or (isinstance(target, torch._ops.OpOverload) and returns_view(target))


def _reads_strides(target):
    if isinstance(target, torch._ops.OpOverload):
        return target in _READERS or get_layout_constraint_tag(target) != torch.Tag.flexible_layout
    return isinstance(target, torch._ops.HigherOrderOperator)  # its function may contain such an operator


def _owner_of_memory(node):
    """The node whose value the node is a view of, or the node itself."""
    while (viewed := _viewed(node)) is not None:
        node = viewed
    return node


def _viewed(node):
    if node.target is operator.getitem:  # a part of a view, or one of several new values
        return _viewed(node.args[0])
    return node.args[0] if is_view(node.target) else None
