# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch's `flex_attention` in graphs whose kernels are C++.

Inductor lowers the operator to Triton templates on every device except the CPU and MPS. Its C++ template
serves neither the backward pass nor the log-sum-exp. This pass composes the operator of torch's own functions
for eager mode, so that Inductor generates the softmax, `score_mod` and `mask_mod` as loops and calls the
products.
"""

import importlib
import operator

import torch
from torch._inductor import inductor_prims as prims
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from .nodes import is_on_musa

# torch._higher_order_ops has an operator of the module's name.
_torchs = importlib.import_module("torch._higher_order_ops.flex_attention")


def compose(graph_module):
    """Replaces calls of `flex_attention` and of its backward pass on musa by the operators of eager mode.

    The scores of all queries and keys are in memory, as in eager mode.

    Args:
        graph_module (torch.fx.GraphModule): the graph; modified in place.
    """
    graph = graph_module.graph
    for target, function in (
        (torch.ops.higher_order.flex_attention, _torchs.math_attention),
        (torch.ops.higher_order.flex_attention_backward, _backward),
    ):
        for node in graph.find_nodes(op="call_function", target=target):
            if is_on_musa(node.args[0]):
                _inline(node, function)


def _backward(*arguments):
    """torch's backward pass, with the gradients that the graph of `score_mod` computes.

    torch's function computes gradients of the captured tensors that require them, and a graph's fake tensors
    require none.

    Args:
        *arguments: those of the operator. The ninth is the graph of the gradients of `score_mod`: those of
            the score and four indices, then those of the captured tensors: the last argument but one.

    Returns:
        tuple: the gradients of query, key and value, and a tuple of the gradients of the captured tensors,
        with None for those that have none.
    """
    *others, captured, captured_by_mask = arguments
    gradients = arguments[8].graph.output_node().args[0][5:]
    captured = tuple(
        x if gradient is None else x.detach().requires_grad_() for x, gradient in zip(captured, gradients)
    )
    return _torchs.sdpa_dense_backward(*others, captured, captured_by_mask)


def _inline(node, function):
    """Replaces the node by the nodes of the function, which is called with the node's arguments."""
    graph, root = node.graph, node.graph.owning_module
    leaves, spec = pytree.tree_flatten(node.args)
    leaves = [_function_of(root, leaf) for leaf in leaves]
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.fx.Node)]
    operands = [leaves[place] for place in places]

    def called(*values):
        arguments = dict(enumerate(leaves)) | dict(zip(places, values))
        return function(*pytree.tree_unflatten(arguments.values(), spec))

    with V.fake_mode, torch.no_grad():
        values = [operand.meta["val"] for operand in operands]
        traced = make_fx(called, select_decomp_table())(*values)
    _write_out_constants(traced, node.args[0].meta["val"].device)
    placeholders = traced.graph.find_nodes(op="placeholder")
    with graph.inserting_before(node):
        results = graph.graph_copy(traced.graph, dict(zip(placeholders, operands)))
    _replace(node, results)


def _function_of(root, leaf):
    """Returns the graph module of a node that names one, such as that of `score_mod`, otherwise the leaf."""
    if not isinstance(leaf, torch.fx.Node) or leaf.op != "get_attr":
        return leaf
    function = getattr(root, leaf.target)
    if not isinstance(function, torch.fx.GraphModule):
        return leaf
    # Inductor orders the operands of other libraries' operators. These are numbers, which have no order, and
    # torch.vmap would call the node for each of them.
    for node in function.graph.find_nodes(op="call_function", target=prims.force_stride_order):
        node.replace_all_uses_with(node.args[0])
        function.graph.erase_node(node)
    function.recompile()
    return function


def _write_out_constants(traced, device):
    """Replaces the numbers that torch's functions make by nodes on the device."""
    for node in traced.graph.find_nodes(op="get_attr"):
        constant = getattr(traced, node.target)
        if isinstance(constant, torch.Tensor):
            with unset_fake_temporarily():
                number = constant.item()
            options = {"dtype": constant.dtype, "device": device}
            with traced.graph.inserting_before(node):
                written = traced.graph.call_function(torch.ops.aten.full.default, ([], number), options)
            with V.fake_mode:
                written.meta["val"] = torch.full([], number, **options)
            node.replace_all_uses_with(written)
            traced.graph.erase_node(node)


def _replace(node, result):
    """Replaces the node, or its parts if the result is a tuple, and erases it."""
    if isinstance(result, (tuple, list)):
        for user in list(node.users):
            assert user.target is operator.getitem
            _replace(user, result[user.args[1]])
    else:
        node.replace_all_uses_with(result)
    node.graph.erase_node(node)
