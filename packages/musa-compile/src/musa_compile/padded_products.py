# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Pads the operands of matrix products where that is measured to be faster.

Libraries compute products with slower kernels if the rows of a matrix do not start at multiples of 16 bytes.
The head of a language model with an odd number of tokens is such a product. Inductor pads products on its own
GPUs only (`pad_mm`), and its device test cannot be extended.
"""

import functools
import logging
from typing import NamedTuple

import torch
from torch._inductor import config
from torch._inductor.utils import is_view
from torch._subclasses.fake_tensor import unset_fake_temporarily

from . import timing
from .nodes import call, has_known_size

_aten = torch.ops.aten
_log = logging.getLogger(__name__)

_PRODUCTS = (_aten.mm.default, _aten.addmm.default, _aten.bmm.default)
_DTYPES = (torch.float16, torch.bfloat16, torch.float32)
_ROW_BYTES = 16
_LEAST = 2**30  # multiplications; fewer take about as long as the launches of the copies
_GAIN = 1.1  # ratio of times from which padding is worth its memory


class _Added(NamedTuple):
    """Rows and columns added to a product of an m x k and a k x n matrix."""

    m: int
    k: int
    n: int


class _Layout(NamedTuple):
    """A tensor without its values."""

    shape: tuple
    stride: tuple
    dtype: torch.dtype
    device: torch.device


def pad(graph):
    """Replaces products by products of padded operands, followed by slices.

    Dimensions are padded with zeros if they are the rows of an operand or of the result, have a known size
    other than 1, and do not fill a multiple of 16 bytes. `torch._inductor.config.shape_padding` and
    `force_shape_pad` apply. In deterministic mode nothing is padded, because the choice depends on times.

    Args:
        graph (torch.fx.Graph): modified in place.
    """
    if not config.shape_padding:
        return
    copies = {}
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target not in _PRODUCTS:
            continue
        added, is_returned = _padding(node), _is_returned(node)
        if not any(added) or not (config.force_shape_pad or _pays(node, added, is_returned)):
            continue
        with graph.inserting_before(node):
            product = _multiply(
                functools.partial(call, graph),
                functools.partial(_pad_node, graph, copies),
                node.target, node.args, node.kwargs, added, is_returned,
            )  # fmt: skip
        node.replace_all_uses_with(product)
        graph.erase_node(node)


def _padding(node):
    a, b = node.args[-2:]
    if not all(has_known_size(operand) for operand in node.args):
        return _Added(0, 0, 0)
    a, b = a.meta["val"], b.meta["val"]
    if a.dtype not in _DTYPES or not (a.numel() and b.numel()):
        return _Added(0, 0, 0)
    multiple = _ROW_BYTES // a.itemsize
    # A matrix is stored by columns if only its first dimension has stride 1.
    a_by_columns, b_by_columns = (x.stride(-1) != 1 and x.stride(-2) == 1 for x in (a, b))
    sizes = (
        a.shape[-2] if a_by_columns else 1,
        a.shape[-1] if not a_by_columns or b_by_columns else 1,
        b.shape[-1],
    )
    return _Added(*(0 if size == 1 else -size % multiple for size in sizes))


def _is_returned(node):
    """Whether the graph returns the node or a view of it: outputs must have the strides of eager mode."""
    return any(user.op == "output" or (_is_view(user) and _is_returned(user)) for user in node.users)


def _is_view(node):
    return isinstance(node.target, torch._ops.OpOverload) and is_view(node.target)


def _multiply(call, pad, target, operands, kwargs, added, is_returned):
    """The slice of the padded product, as a node or a tensor, depending on `call` and `pad`."""
    *bias, a, b = operands
    sizes = _value(a).shape[-2], _value(b).shape[-1]
    # A bias that is broadcast along a dimension stays as it is.
    bias = [
        pad(x, added.m if _is_long(x, -2) else 0, added.n if _is_long(x, -1) else 0) for x in bias
    ]
    product = call(target, *bias, pad(a, added.m, added.k), pad(b, added.k, added.n), **kwargs)
    for dim, size, more in ((-2, sizes[0], added.m), (-1, sizes[1], added.n)):
        if more:
            product = call(_aten.slice.Tensor, product, dim, 0, size)
    if is_returned:
        product = call(_aten.clone.default, product, memory_format=torch.contiguous_format)
    return product


def _value(x):
    return x.meta["val"] if isinstance(x, torch.fx.Node) else x


def _is_long(x, dim):
    return _value(x).dim() >= -dim and _value(x).shape[dim] != 1


def _pad_node(graph, copies, x, rows, columns):
    """Pads a node's matrices. Products that pad the same matrix, permuted or not, share the copy."""
    if not (rows or columns):
        return x
    if x.target is _aten.permute.default and list(x.args[1]) == [1, 0]:
        return call(graph, _aten.permute.default, _pad_node(graph, copies, x.args[0], columns, rows), [1, 0])
    key = x, rows, columns
    if key not in copies:
        copies[key] = call(graph, _aten.constant_pad_nd.default, x, _margins(x, rows, columns))
    return copies[key]


def _pad_tensor(x, rows, columns):
    return _aten.constant_pad_nd.default(x, _margins(x, rows, columns)) if rows or columns else x


def _margins(x, rows, columns):
    return [0, columns, 0, rows] if _value(x).dim() > 1 else [0, columns]


def _pays(node, added, is_returned):
    a, b = (x.meta["val"] for x in node.args[-2:])
    if config.deterministic or a.numel() * b.shape[-1] < _LEAST:
        return False
    values = [x.meta["val"] for x in node.args]
    operands = tuple(_Layout(tuple(x.shape), x.stride(), x.dtype, x.device) for x in values)
    return _is_faster(node.target, operands, added, is_returned)


@functools.cache
def _is_faster(target, operands, added, is_returned):
    """Measures a product with and without padding.

    The copies of operands count, although the kernels that compute the operands may write the padding.
    """
    with unset_fake_temporarily(), torch.no_grad():
        try:
            tensors = [
                torch.empty_strided(x.shape, x.stride, dtype=x.dtype, device=x.device) for x in operands
            ]
            arguments = _run, _pad_tensor, target, tensors, {}
            plain_ms, padded_ms = (
                timing.measure(None, functools.partial(_multiply, *arguments, *how), warmup=5, rep=20)
                for how in ((_Added(0, 0, 0), False), (added, is_returned))
            )
        except torch.OutOfMemoryError as error:
            _log.info("a product is not padded, because measuring it takes too much memory: %s", error)
            return False
    _log.debug("%s %s + %s: %.3f ms, padded %.3f ms", target, operands, added, plain_ms, padded_ms)
    return plain_ms > _GAIN * padded_ms


def _run(target, *args, **kwargs):
    return target(*args, **kwargs)
