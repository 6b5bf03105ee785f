# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Graph passes that run before Inductor generates C++ kernels for musa.

Inductor applies some transformations that C++ kernels need to CPU tensors only, and its device tests cannot
be extended. These passes express the transformations in the graph instead.
"""

import math
import operator

import torch
from torch._inductor import config
from torch._inductor import inductor_prims as prims
from torch._inductor.lowering import register_lowering
from torch._inductor.utils import parallel_num_threads
from torch._inductor.virtualized import V

from . import (
    _compat,
    kernels,  # noqa: F401 - its library defines torch.ops.musa_compile
    strides,
)
from .nodes import call, has_known_size, is_on_musa

_aten = torch.ops.aten
_realized = torch.ops.musa_compile.realized
_scatter_add = torch.ops.musa_compile.scatter_add_
_max_pool_backward = torch.ops.musa_compile.max_pool2d_backward

# Functions whose results Inductor stores on the CPU instead of recomputing them for each use.
_COSTLY = {
    getattr(_aten, name).default for name in ("exp", "log", "log10", "log1p", "log2", "sigmoid", "tanh")
}
_RESHAPES = {_aten.view.default, _aten.reshape.default, _aten._unsafe_view.default}
_VIEWS = {
    *_RESHAPES,
    _aten.permute.default,
    _aten.unsqueeze.default,
    _aten.squeeze.dim,
    _aten.squeeze.dims,
    _aten.expand.default,
    _aten.slice.Tensor,
    _aten.select.int,
}


def prepare(graph_module):
    """Applies the passes in order.

    Args:
        graph_module (torch.fx.GraphModule): the graph; modified in place.
    """
    graph = graph_module.graph
    strides.keep(graph)
    _count_in_logical_order(graph)
    _compute_variances_in_two_steps(graph)
    _keep_costly_results(graph)
    _convolve_in_channels_last(graph)
    if not (config.cpp_wrapper or V.aot_compilation):  # code in C++ cannot call the operators of this package
        _call_max_pool_backward(graph)
        _call_scatter_add(graph)


@register_lowering(_realized.default, type_promotion_kind=None)
def _lower_realized(x):
    x.realize()
    return x


def _count_in_logical_order(graph):
    """Flattens the operands of argmax and argmin over all dimensions.

    The result is an index in logical order. Inductor loops over a tensor in memory order, and counts in
    that order except on devices that it lists.
    """
    for target in (_aten.argmax.default, _aten.argmin.default):
        for node in graph.find_nodes(op="call_function", target=target):
            x = node.args[0]
            dim = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
            if dim is not None or not is_on_musa(x) or x.meta["val"].dim() < 2:
                continue
            keepdim = node.args[2] if len(node.args) > 2 else node.kwargs.get("keepdim", False)
            with graph.inserting_before(node):
                flat = call(graph, _aten.reshape.default, x, [-1])
                index = call(graph, target, flat, 0)
                if keepdim:
                    index = call(graph, _aten.reshape.default, index, [1] * x.meta["val"].dim())
            node.replace_all_uses_with(index)
            graph.erase_node(node)


def _compute_variances_in_two_steps(graph):
    """Computes variances of few elements as the mean of squared differences, which is vectorized.

    Inductor does so up to a number of elements on the CPU. On other devices the limit is 8 elements, above
    which it uses Welford's recurrence.
    """
    limit = _compat.two_step_variance_limit()
    for node in graph.find_nodes(op="call_function", target=_aten.var_mean.correction):
        x = node.args[0]
        dims = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
        if not is_on_musa(x) or not dims or x.meta["val"].dtype not in (torch.float32, torch.float64):
            continue
        sizes = [x.meta["val"].shape[dim] for dim in dims]
        if not all(isinstance(size, int) for size in sizes):
            continue
        count = math.prod(sizes)
        if not 1 < count <= limit or count == x.meta["val"].numel():
            continue
        correction, keepdim = node.kwargs.get("correction"), node.kwargs.get("keepdim", False)
        correction = 1 if correction is None else correction
        if count <= correction:
            continue  # torch defines the result of dividing by zero or a negative number
        if not all(user.target is operator.getitem for user in node.users):
            continue
        with graph.inserting_before(node):
            mean = call(graph, _aten.mean.dim, x, list(dims), True)
            difference = call(graph, _aten.sub.Tensor, x, mean)
            square = call(graph, _aten.mul.Tensor, difference, difference)
            total = call(graph, _aten.sum.dim_IntList, square, list(dims), keepdim)
            variance = call(graph, _aten.div.Tensor, total, count - correction)
            if not keepdim:
                mean = call(graph, _aten.squeeze.dims, mean, list(dims))
        for user in list(node.users):
            user.replace_all_uses_with((variance, mean)[user.args[1]])
            graph.erase_node(user)
        graph.erase_node(node)


def _keep_costly_results(graph):
    """Stores results of costly functions that several nodes use, instead of recomputing them."""
    costly = set()  # expensive nodes that are recomputed for each use, and their views
    for node in list(graph.nodes):
        if node.op != "call_function" or not is_on_musa(node):
            continue
        depends = any(each in costly for each in node.all_input_nodes)
        if node.target in _VIEWS:
            costly.update([node] if depends else [])
        elif node.target in _COSTLY or (depends and torch.Tag.pointwise in getattr(node.target, "tags", ())):
            if _count_uses(node) > 1:
                with graph.inserting_after(node):
                    kept = call(graph, _realized.default, node)
                node.replace_all_uses_with(kept, lambda user, kept=kept: user is not kept)
            else:
                costly.add(node)


def _count_uses(node):
    """The number of nodes that compute with the value. A view of it computes nothing."""
    return sum(_count_uses(user) if user.target in _VIEWS else 1 for user in node.users)


def _convolve_in_channels_last(graph):
    """Puts the operands of convolutions over two dimensions into channels_last, in which they are faster.

    Inductor does so for all convolutions on the CPU. On other devices it does not if they have few channels.
    """
    for target, count in ((_aten.convolution.default, 2), (_aten.convolution_backward.default, 3)):
        for node in graph.find_nodes(op="call_function", target=target):
            operands = node.args[:count]
            if not all(has_known_size(x) and x.meta["val"].dim() == 4 for x in operands):
                continue
            with graph.inserting_before(node):
                moved = [_in_order(graph, x, torch.channels_last) for x in operands]
            node.args = (*moved, *node.args[count:])


def _call_max_pool_backward(graph):
    """Calls the operator for the gradient of max pooling over two dimensions, in channels_last.

    Its decomposition adds into a row for each channel, so operands and results, which convolutions have in
    channels_last, would be transposed.
    """
    for node in graph.find_nodes(op="call_function", target=_aten.scatter_add.default):
        _, dim, *operands = node.args
        index, gradient = (_before_copies(operand) for operand in operands)
        if index.target != prims._low_memory_max_pool_offsets_to_indices or dim != 1:
            continue
        if not all(has_known_size(x) and x.meta["val"].dim() == 4 for x in (index, gradient)):
            continue
        offsets, kernel_size, input_size, *window = index.args
        shape = (*gradient.meta["val"].shape[:2], *input_size)
        results = list(node.users)
        if (
            not _is_zeros(node.args[0])
            or not offsets.meta["val"].is_contiguous(memory_format=torch.channels_last)
            or index.meta["val"].shape != gradient.meta["val"].shape
            or any(result.target not in _RESHAPES or result.meta["val"].shape != shape for result in results)
            or any(user.op == "output" for result in results for user in result.users)  # of fixed strides
        ):
            continue
        with graph.inserting_before(node):
            moved = (_in_order(graph, x, torch.channels_last) for x in (gradient, index))
            total = call(graph, _max_pool_backward.default, *moved, kernel_size, input_size, *window)
        for result in results:
            result.replace_all_uses_with(total)
            graph.erase_node(result)
        graph.erase_node(node)


def _before_copies(node):
    while node.target in _RESHAPES or node.target == _aten.clone.default:
        node = node.args[0]
    return node


def _is_zeros(node):
    return node.target == _aten.full.default and node.args[1] == 0


def _call_scatter_add(graph):
    """Calls the operator for sums over indices, as Inductor does on the CPU if kernels use several threads.

    A generated loop adds each element atomically.
    """
    if not config.cpp.fallback_scatter_reduce_sum or not (
        config.cpp.dynamic_threads or parallel_num_threads() > 1
    ):
        return
    for node in graph.find_nodes(op="call_function", target=_aten.scatter_add.default):
        if all(has_known_size(x) for x in (node.args[0], *node.args[2:])):
            with graph.inserting_before(node):
                total = call(graph, _aten.clone.default, node.args[0])
                index, source = (_in_order(graph, x) for x in node.args[2:])
                call(graph, _scatter_add.default, total, node.args[1], index, source)
            node.replace_all_uses_with(total)
            graph.erase_node(node)


def _in_order(graph, x, memory_format=torch.contiguous_format):
    """A node with the value of `x`, which is copied unless it is stored in that order.

    The fake tensor of `x` has no final strides: Inductor chooses the order of most results later.
    """
    order = torch.empty(x.meta["val"].shape, device="meta", memory_format=memory_format).stride()
    return call(graph, prims.force_stride_order, x, list(order))
