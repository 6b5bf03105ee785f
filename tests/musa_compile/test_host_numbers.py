# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Operators on musa with a number in host memory, a tensor of no dimensions, among their operands: compiled
functions compute on musa, in every order of the operands, as in eager mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from tests.conformance import operators
from tests.conformance.operators import Case
from tests.conformance.variants import arguments_on
from tests.harness.parts import sample

pytestmark = [pytest.mark.once]

PROGRAMS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "first": lambda s, x: s * x,
    "last": lambda s, x: x - s,
    "before a product": lambda s, x: (s * x) @ x.mT,
    "condition": lambda s, x: torch.where(s > 0, x, s),
    "start": lambda s, x: torch.addcmul(s, x, x),
    "computed": lambda s, x: s.exp() * x + s,
    "element": lambda s, x: torch.stack([s, s * 2])[1] * x,
    "of another dtype": lambda s, x: s.long() * x.half(),
    "list": lambda s, x: torch._foreach_mul([x, x + 1], s),
    "written": lambda s, x: x.clone().mul_(s),
    "stays": lambda s, x: (s * 2, s.clone().copy_(x.sum()), s * x),
}


def _require_same(actual: Any, expected: Any, what: str) -> None:
    """Values, dtypes and devices are equal."""
    for each, other in zip(pytree.tree_leaves(actual), pytree.tree_leaves(expected), strict=True):
        torch.testing.assert_close(each, other, equal_nan=True, msg=f"{what}: {{}}".format)


def test_results_are_on_the_device_of_eager_mode(compiler: None) -> None:
    def program(s: Tensor, x: Tensor) -> list[Any]:
        return [each(s, x) for each in PROGRAMS.values()]

    s, x = torch.tensor(0.5), torch.randn(5, 7, device="musa")
    for name, each, other in zip(PROGRAMS, torch.compile(program)(s, x), program(s, x), strict=True):
        _require_same(each, other, name)


@pytest.mark.parametrize("reads", [True, False])
def test_only_operators_on_musa_read_a_number_on_the_device(reads: bool) -> None:
    from musa_compile import host_numbers

    s, x = torch.tensor(0.5), torch.randn(3, device="musa")
    program = (
        (lambda s, x: (s * x, x + s)) if reads else (lambda s, x: (s * 2, x.to("cpu") + s, s.to("musa")))
    )
    graph_module = make_fx(program, tracing_mode="fake")(s, x)
    host_numbers.read_on_device(graph_module.graph)
    graph_module.recompile()
    target = torch.ops.musa_compile.on_device.default
    assert len(list(graph_module.graph.find_nodes(op="call_function", target=target))) == int(reads)
    _require_same(graph_module(s, x), program(s, x), "graph")


def cases() -> dict[str, Case]:
    """Operators with two or more tensors among the arguments of a sample, by name."""
    return {
        case.name: case
        for case in operators.forward_cases()
        if case.dtype is torch.float32 and case.layout is torch.strided and len(_tensors(_first(case))) > 1
    }


def _first(case: Case) -> Any:
    return next(iter(case.samples(False)), None)


def _tensors(sample: Any) -> list[Tensor]:
    leaves = pytree.tree_leaves((sample.input, sample.args, sample.kwargs)) if sample is not None else []
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


# The decomposition has another shape, on the CPU as well, the fake kernel another device, for each device, or
# the new elements of the result are undefined.
TORCHS_OWN = {
    ("_unsafe_masked_index", 2),
    ("_unsafe_masked_index", 3),
    ("as_strided_scatter", 0),
    ("resize_as_", 0),
}


def _with_number(case: Case) -> Iterator[tuple[int, Any]]:
    """The arguments of the first sample on musa, each tensor in turn replaced by a number on the host."""
    arguments = arguments_on(case.op, _first(case), "musa")
    leaves, spec = pytree.tree_flatten(arguments)
    for at, leaf in enumerate(leaves):
        if (case.name, at) in TORCHS_OWN or not isinstance(leaf, Tensor):
            continue
        if leaf.layout is torch.strided and leaf.numel():
            number = leaf.detach().reshape(-1)[0].cpu()
            yield at, pytree.tree_unflatten([*leaves[:at], number, *leaves[at + 1 :]], spec)


@pytest.mark.slow
@pytest.mark.parametrize("name", sample(cases(), 60))
def test_operators_take_numbers_as_in_eager_mode(compiler: None, name: str) -> None:
    op = cases()[name].op
    accepted, expected = [], []
    for at, (value, args, kwargs) in _with_number(cases()[name]):
        try:
            expected.append(op(value, *args, **kwargs))
        except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError):
            continue
        accepted.append((at, value, args, kwargs))
    if not accepted:
        return

    def program(given: list[Any]) -> list[Any]:
        return [op(value, *args, **kwargs) for _, value, args, kwargs in given]

    for (at, *_), each, other in zip(accepted, torch.compile(program)(accepted), expected, strict=True):
        _require_same(each, other, f"{name}, tensor {at}")
