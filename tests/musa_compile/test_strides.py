# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Values that a program reads by strides: each pass over graphs that changes the order in which a value is
stored, before each operator that reads memory, compiled on musa against eager mode. Numbers and strides are
the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

pytestmark = pytest.mark.once
cpp_passes = pytest.mark.host_addressable("the passes are those before C++ kernels")

aten = torch.ops.aten


def _numbers(*shape: int) -> Tensor:
    """Small integers, so that sums in another order are equal too."""
    return torch.randint(-4, 5, shape, generator=torch.Generator().manual_seed(sum(shape))).float()


def _convolution_backward(which: int) -> Callable[..., Tensor]:
    def program(gradient: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        options = ([16], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True])
        return aten.convolution_backward(gradient, x, weight, *options)[which]

    return program


def _pool_backward(gradient: Tensor, x: Tensor) -> Tensor:
    indices = aten.max_pool2d_with_indices(x, [2, 2])[1]
    found = aten.max_pool2d_with_indices_backward(gradient, x, [2, 2], [2, 2], [0, 0], [1, 1], False, indices)
    return found.contiguous()


def _sums(index: Tensor, source: Tensor) -> Tensor:
    """Into a tensor with the channels last."""
    start = torch.zeros(2, 16, 16, 16, device=source.device).contiguous(memory_format=torch.channels_last)
    return start.scatter_add(1, index, source)


def _image(last: bool = False) -> Tensor:
    x = _numbers(2, 8, 16, 16)
    return x.contiguous(memory_format=torch.channels_last) if last else x


def _wide_image() -> Tensor:
    return _numbers(2, 16, 32, 32).contiguous(memory_format=torch.channels_last)


def _indices() -> Tensor:
    return torch.randint(16, (2, 16, 16, 16), generator=torch.Generator().manual_seed(1))


# For each pass: a program that it changes, with a result of 8192 elements or more in four dimensions.
PASSES: dict[str, tuple[Callable[..., Tensor], Callable[[], list[Tensor]]]] = {
    "convolution": (F.conv2d, lambda: [_image(), _numbers(16, 8, 1, 1)]),
    "convolution and relu": (lambda x, w: F.conv2d(x, w).relu(), lambda: [_image(), _numbers(16, 8, 1, 1)]),
    "part of a convolution": (
        lambda x, w: F.conv2d(x, w)[:, 1:],
        lambda: [_image(), _numbers(17, 8, 1, 1)],
    ),
    "convolution in channels_last": (F.conv2d, lambda: [_image(last=True), _numbers(16, 8, 1, 1)]),
    "gradient of a convolution's input": (
        _convolution_backward(0),
        lambda: [_numbers(2, 16, 16, 16), _numbers(2, 16, 16, 16), _numbers(16, 16, 3, 3)],
    ),
    "gradient of a convolution's weight": (
        _convolution_backward(1),
        lambda: [_numbers(1, 32, 8, 8), _numbers(1, 32, 8, 8), _numbers(32, 32, 3, 3)],
    ),
    "gradient of pooling": (_pool_backward, lambda: [_numbers(2, 16, 8, 8), _numbers(2, 16, 16, 16)]),
    "gradient of pooling in channels_last": (
        _pool_backward,
        lambda: [
            value.contiguous(memory_format=torch.channels_last)
            for value in (_numbers(2, 16, 8, 8), _numbers(2, 16, 16, 16))
        ],
    ),
    "sums over indices": (_sums, lambda: [_indices(), _numbers(2, 16, 16, 16)]),
    "sums over computed indices": (
        lambda index, source: _sums((index * 3 + 1) % 16, source),
        lambda: [_indices(), _numbers(2, 16, 16, 16)],
    ),
    "pooling in channels_last": (lambda x: F.max_pool2d(x * 2, 2), lambda: [_wide_image()]),
    "average pooling in channels_last": (lambda x: F.avg_pool2d(x * 2, 2), lambda: [_wide_image()]),
    "pooling of a convolution": (
        lambda x, w: F.max_pool2d(F.conv2d(x, w), 3, 1, 1),
        lambda: [_image(), _numbers(16, 8, 1, 1)],
    ),
    "part of a kept result": (
        lambda x: (x * 2).sigmoid().round()[..., 1:],
        lambda: [_numbers(2, 16, 16, 17)],
    ),
    "mean and variance": (
        lambda x: sum(torch.var_mean(x, [-1], correction=0)),
        lambda: [_numbers(16, 16, 4, 2, 16).permute(3, 1, 0, 2, 4)],
    ),
    "mean and variance of a view": (
        lambda x: sum(torch.var_mean((x * 2).permute(3, 1, 0, 2, 4), [-1], correction=0)),
        lambda: [_numbers(16, 16, 4, 2, 16)],
    ),
}


def _defined(name: str, *tags: torch.Tag, mutates: bool = False) -> Callable[[Tensor], Tensor]:
    """An operator of another library that reads the first elements in memory."""

    def first(x: Tensor) -> Tensor:
        return x.as_strided((64,), (1,)).clone()

    def change(x: Tensor) -> None:
        x.as_strided((64,), (1,)).mul_(2)

    if mutates:
        torch.library.define(f"musa_strides::{name}", "(Tensor(a!) x) -> ()", tags=tags)
        torch.library.impl(f"musa_strides::{name}", ("cpu", "musa"))(change)
        torch.library.register_fake(f"musa_strides::{name}")(lambda x: None)
    else:
        torch.library.define(f"musa_strides::{name}", "(Tensor x) -> Tensor", tags=tags)
        torch.library.impl(f"musa_strides::{name}", ("cpu", "musa"))(first)
        torch.library.register_fake(f"musa_strides::{name}")(lambda x: x.new_empty(64))
    return getattr(torch.ops.musa_strides, name)


_custom = _defined("first")
_fixed = _defined("first_in_order", torch.Tag.needs_fixed_stride_order)
_exact = _defined("first_exactly", torch.Tag.needs_exact_strides)
_change = _defined("change", mutates=True)


def _scattered(x: Tensor) -> Tensor:
    return x.as_strided_scatter(torch.ones(16, 8, device=x.device), (16, 8), (64, 2)) * 2


def _written(x: Tensor) -> Tensor:
    y = x + 0
    y.as_strided((16, 8), (64, 2)).mul_(3)
    return y * 2


def _restrided(x: Tensor) -> Tensor:
    y = x.clone()
    y.as_strided_((16, 8), (64, 2))
    return y * 2


def _changed(x: Tensor) -> Tensor:
    y = x.clone()
    _change(y)
    return y * 2


def _branched(x: Tensor) -> Tensor:
    return torch.cond(
        x.sum() > 1e9,
        lambda x: x.as_strided((16, 8), (32, 2)) + 1,
        lambda x: x.as_strided((16, 8), (64, 2)) - 1,
        (x,),
    )


READERS: dict[str, Callable[[Tensor], Any]] = {
    "as_strided": lambda x: x.as_strided((16, 8), (64, 2)) * 2,
    "as_strided of a view": lambda x: x.permute(0, 2, 3, 1).as_strided((16, 8), (64, 2)) * 2,
    "as_strided of a part": lambda x: x[:, :, 1:].as_strided((16, 8), (64, 2)) * 2,
    "as_strided of a result": lambda x: (x * 3).as_strided((16, 8), (64, 2)) * 2,
    "as_strided_copy": lambda x: torch.as_strided_copy(x, (16, 8), (64, 2)) * 2,
    "as_strided_scatter": _scattered,
    "as_strided_": _restrided,
    "write through as_strided": _written,
    "view as bytes": lambda x: x.contiguous().view(torch.uint8).sum(-1),
    "view as complex numbers": lambda x: torch.view_as_complex(x.reshape(-1, 8, 2)).real * 2,
    "view of one dimension": lambda x: x.reshape(-1) * 2,
    "unfold": lambda x: x.unfold(1, 3, 2) * 2,
    "strides in Python": lambda x: x * x.stride(1) + x.is_contiguous(),
    "operator of another library": lambda x: _custom(x) * 2,
    "operator with a fixed order": lambda x: _fixed(x) * 2,
    "operator with exact strides": lambda x: _exact(x) * 2,
    "operator that writes": _changed,
    "branch": _branched,
    "result": lambda x: x,
    "view that is a result": lambda x: x.transpose(1, 2),
    "as_strided that is a result": lambda x: x.as_strided((16, 8), (64, 2)),
    "result that is read too": lambda x: (x, x.as_strided((16, 8), (64, 2)) + 1),
}


@pytest.fixture
def several_threads() -> Iterator[None]:
    """Sums over indices are calls if kernels use several threads."""
    from torch._inductor import config

    with config.patch({"cpp.threads": 2}):
        yield


# Strides of a result, and a view that eager mode refuses, of values that are not dense, on the CPU as well.
TORCHS_OWN = {
    ("part of a convolution", "result"),
    ("part of a convolution", "view that is a result"),
    ("part of a convolution", "result that is read too"),
    ("part of a kept result", "view as complex numbers"),
}


def _require_strides_of_eager_mode(names: list[str], readers: Iterable[str]) -> None:
    """Compiles all pairs of passes and readers in one graph, each with inputs of its own."""
    pairs = [pair for pair in itertools.product(names, readers) if pair not in TORCHS_OWN]

    def program(inputs: list[list[Tensor]]) -> list[Any]:
        return [READERS[reader](PASSES[name][0](*values)) for (name, reader), values in zip(pairs, inputs)]

    inputs = [[value.to("musa") for value in PASSES[name][1]()] for name, _ in pairs]
    expected, actual = program(inputs), torch.compile(program)(inputs)
    for pair, each, other in zip(pairs, actual, expected, strict=True):
        leaves = zip(pytree.tree_leaves(each), pytree.tree_leaves(other), strict=True)
        for value, eager in leaves:
            torch.testing.assert_close(
                value, eager, rtol=0, atol=0, check_stride=True, msg=f"{pair}: {{}}".format
            )


@cpp_passes
def test_values_are_read_by_the_strides_of_eager_mode(compiler: None, several_threads: None) -> None:
    readers = ("as_strided", "as_strided of a part", "operator with a fixed order", "view that is a result")
    _require_strides_of_eager_mode(["convolution and relu", "gradient of a convolution's input"], readers)


@cpp_passes
@pytest.mark.full
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", PASSES)
def test_one_value_is_read_by_the_strides_of_eager_mode(
    compiler: None, several_threads: None, name: str, reader: str
) -> None:
    _require_strides_of_eager_mode([name], [reader])


@cpp_passes
def test_a_value_that_no_operator_reads_by_strides_stays_in_channels_last(compiler: None) -> None:
    """The comparison fails without the pass that keeps strides: these strides are others."""
    from musa_compile import graph_passes

    x, weight = (value.to("musa") for value in PASSES["convolution"][1]())
    graph_module = make_fx(lambda x, w: F.conv2d(x, w) + 1, tracing_mode="fake")(x, weight)
    graph_passes.prepare(graph_module)
    [node] = graph_module.graph.find_nodes(op="call_function", target=aten.convolution.default)
    [user] = node.users
    assert user.target is aten.add.Tensor
    graph_module = make_fx(lambda x, w: F.conv2d(x, w).as_strided((3,), (1,)), tracing_mode="fake")(x, weight)
    graph_passes.prepare(graph_module)
    [node] = graph_module.graph.find_nodes(op="call_function", target=aten.convolution.default)
    [user] = node.users
    assert user.target is torch._inductor.inductor_prims.force_stride_order
