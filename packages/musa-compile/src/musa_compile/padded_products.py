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
from torch import musa
from torch._inductor import config
from torch._subclasses.fake_tensor import unset_fake_temporarily

from . import strides, timing
from .nodes import call, has_known_size

_aten = torch.ops.aten
_log = logging.getLogger(__name__)

_PRODUCTS = (_aten.mm.default, _aten.addmm.default, _aten.bmm.default)
_DTYPES = (torch.float16, torch.bfloat16, torch.float32)
_ROW_BYTES = 16
_MIN_MULTIPLICATIONS = 2**30  # fewer take about as long as the launches of the copies
_MIN_SPEEDUP = 1.1  # padding needs memory for copies

# What profiles, logs and generated code show of a node.
_ORIGIN = ("stack_trace", "original_aten", "source_fn_stack", "nn_module_stack", "from_node", "seq_nr")


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

    Dimensions are padded with zeros if they are the rows of an operand or of the result, have a size other
    than 1, and do not fill a multiple of 16 bytes. Products with operands of unknown sizes stay as they are.
    `torch._inductor.config.shape_padding` and `force_shape_pad` apply. In deterministic mode only
    `force_shape_pad` pads, because other decisions depend on times.

    Args:
        graph (torch.fx.Graph): modified in place.
    """
    if not config.shape_padding:
        return
    strides.keep(graph)
    copies, returned = {}, _returned_to_program(graph)
    for node in list(graph.nodes):
        if _mutates(node):
            copies.clear()
        if node.op != "call_function" or node.target not in _PRODUCTS:
            continue
        added = _padding(node)
        if not any(added):
            continue
        # A slice has gaps between its rows, or between its matrices.
        has_gaps = added.n or (added.m and node.target is _aten.bmm.default)
        is_copied = bool(has_gaps and _needs_strides(node, returned))
        if not (config.force_shape_pad or _is_worth_padding(node, added, is_copied)):
            continue
        add = functools.partial(_add, graph, {key: node.meta[key] for key in _ORIGIN if key in node.meta})
        with graph.inserting_before(node):
            product = _multiply(
                add, functools.partial(_pad_node, add, copies),
                node.target, node.args, node.kwargs, added, is_copied,
            )  # fmt: skip
        node.replace_all_uses_with(product)
        graph.erase_node(node)


def _mutates(node):
    """Whether a node may change its operands, which other nodes read before and after it."""
    if isinstance(node.target, torch._ops.OpOverload):
        return node.target._schema.is_mutable
    return isinstance(node.target, torch._ops.HigherOrderOperator)


def _add(graph, origin, target, *args, **kwargs):
    node = call(graph, target, *args, **kwargs)
    node.meta.update(origin)
    return node


def _padding(node):
    values = [x.meta["val"] for x in node.args if has_known_size(x)]
    if len(values) < len(node.args) or not all(isinstance(s, int) for x in values for s in x.stride()):
        return _Added(0, 0, 0)
    a, b = values[-2:]
    if a.dtype not in _DTYPES or not (a.numel() and b.numel()):
        return _Added(0, 0, 0)
    multiple = _ROW_BYTES // a.itemsize
    sizes = (
        a.shape[-2] if _is_by_columns(a) else 1,
        a.shape[-1] if not _is_by_columns(a) or _is_by_columns(b) else 1,
        b.shape[-1],
    )
    return _Added(*(0 if size == 1 else -size % multiple for size in sizes))


def _is_by_columns(x):
    """Whether the columns of a matrix, not its rows, are contiguous."""
    return x.dim() > 1 and x.stride(-1) != 1 and x.stride(-2) == 1


def _returned_to_program(graph):
    """The outputs that the program gets. Others are kept for the gradient, in any order."""
    [output] = graph.find_nodes(op="output")
    values = output.args[0] if isinstance(output.args[0], (tuple, list)) else output.args
    visible = output.meta.get("user_visible_output_idxs", range(len(values)))
    return {values[i] for i in visible if isinstance(values[i], torch.fx.Node)}


def _needs_strides(node, returned):
    """Whether the node or a view of it must have the strides of eager mode."""
    return strides.are_kept(node) or _is_returned(node, returned)


def _is_returned(node, returned):
    return node in returned or any(
        strides.is_view(user.target) and _is_returned(user, returned) for user in node.users
    )


def _multiply(add, pad, target, operands, kwargs, added, is_copied):
    """The slice of the padded product: a node or a tensor, as `add` and `pad` return it."""
    *bias, a, b = operands
    sizes = _value(a).shape[-2], _value(b).shape[-1]
    # A bias that is broadcast along a dimension stays as it is.
    bias = [pad(x, added.m if _spans(x, -2) else 0, added.n if _spans(x, -1) else 0) for x in bias]
    product = add(target, *bias, pad(a, added.m, added.k), pad(b, added.k, added.n), **kwargs)
    for dim, size, more in ((-2, sizes[0], added.m), (-1, sizes[1], added.n)):
        if more:
            product = add(_aten.slice.Tensor, product, dim, 0, size)
    if is_copied:
        product = add(_aten.clone.default, product, memory_format=torch.contiguous_format)
    return product


def _value(x):
    return x.meta["val"] if isinstance(x, torch.fx.Node) else x


def _spans(x, dim):
    return _value(x).dim() >= -dim and _value(x).shape[dim] != 1


def _pad_node(add, copies, x, rows, columns):
    """Pads a node's matrices. Products that pad the same ones equally, transposed or not, share the copy."""
    if not (rows or columns):
        return x
    swapped = list(range(x.meta["val"].dim()))
    swapped[-2:] = reversed(swapped[-2:])
    if x.target is _aten.permute.default and list(x.args[1]) == swapped:
        return add(_aten.permute.default, _pad_node(add, copies, x.args[0], columns, rows), swapped)
    key = x, rows, columns
    if key not in copies:
        copies[key] = add(_aten.constant_pad_nd.default, x, _margins(x, rows, columns))
    return copies[key]


def _pad_tensor(x, rows, columns):
    if not (rows or columns):
        return x
    if _is_by_columns(x):  # generated code keeps the order
        return _pad_tensor(x.mT, columns, rows).mT
    return _aten.constant_pad_nd.default(x, _margins(x, rows, columns))


def _margins(x, rows, columns):
    return [0, columns, 0, rows] if _value(x).dim() > 1 else [0, columns]


def _is_worth_padding(node, added, is_copied):
    values = [x.meta["val"] for x in node.args]
    if values[-2].numel() * values[-1].shape[-1] < _MIN_MULTIPLICATIONS:
        return False
    if config.deterministic or getattr(config, "batch_invariant", False):  # torch 2.13 and later
        return False
    operands = tuple(_Layout(tuple(x.shape), x.stride(), x.dtype, x.device) for x in values)
    settings = (
        torch.backends.cuda.matmul.fp32_precision,
        getattr(getattr(torch.backends, "mudnn", None), "allow_tf32", None),
    )
    try:
        return _is_faster(node.target, operands, added, is_copied, settings)
    except torch.OutOfMemoryError as error:
        _log.info("a product is not padded, because measuring it takes too much memory: %s", error)
        return False


@functools.cache
def _is_faster(target, operands, added, is_copied, settings):
    """Measures a product with and without padding.

    The copies of operands count, although the kernels that compute the operands may write the padding, and
    products may share a copy.

    settings: of torch, on which the times depend.
    """
    with unset_fake_temporarily(), torch.no_grad(), musa.device(operands[0].device):
        tensors = [torch.empty_strided(x.shape, x.stride, dtype=x.dtype, device=x.device) for x in operands]
        arguments = _call_operator, _pad_tensor, target, tensors, {}
        plain_ms, padded_ms = (
            timing.measure(None, functools.partial(_multiply, *arguments, *how), warmup=5, rep=20)
            for how in ((_Added(0, 0, 0), False), (added, is_copied))
        )
    _log.debug("%s %s + %s: %.3f ms, padded %.3f ms", target, operands, added, plain_ms, padded_ms)
    return plain_ms > _MIN_SPEEDUP * padded_ms


def _call_operator(target, *args, **kwargs):
    return target(*args, **kwargs)
