# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""If results must repeat, operators whose order of additions or writes muDNN does not document go to the next
provider: with torch.use_deterministic_algorithms and with torch.backends.mudnn.deterministic."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

SOURCES = Path(__file__).resolve().parents[2] / "packages" / "musa-ops-mudnn" / "csrc"

Call = Callable[[str], torch.Tensor]  # from the device to the result


def x(device: str, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape))).to(device)


def index(device: str, *values: int) -> torch.Tensor:
    return torch.tensor(values).to(device)


def gradient(function: Callable[[torch.Tensor], torch.Tensor], *shape: int) -> Call:
    """Returns a call that differentiates the function at a tensor of this shape."""

    def call(device: str) -> torch.Tensor:
        leaf = x(device, *shape).requires_grad_()
        out = function(leaf)
        pull = torch.linspace(0.1, 1.7, out.numel()).reshape(out.shape)
        return torch.autograd.grad(out, leaf, pull.to(device))[0]

    return call


def filter_gradient(function: Callable, dims: int) -> Call:
    return gradient(lambda w: function(x(w.device.type, *(2, 3) + (6,) * dims), w), *(3, 3) + (2,) * dims)


def pooling(function: Callable, dims: int, *arguments: object) -> Call:
    return gradient(lambda t: function(t, *arguments), *(2, 3) + (6,) * dims)


def interpolation(name: str, dims: int, *arguments: bool) -> tuple[str, Call]:
    # Not functional.interpolate, which composes other operators where results must repeat.
    function = getattr(torch.ops.aten, name)
    call = gradient(lambda t: function(t, (8,) * dims, *arguments), *(2, 3) + (5,) * dims)
    return f"aten::{name}_backward", call


def ctc_loss(device: str) -> torch.Tensor:
    targets = index(device, 1, 2, 3, 4, 1, 2).view(2, 3)
    return gradient(lambda t: F.ctc_loss(t.log_softmax(-1), targets, (6, 5), (3, 2)), 6, 2, 5)(device)


def ctc_loss_with_lengths_on_the_device(device: str) -> torch.Tensor:
    scores, targets = x(device, 6, 2, 5).log_softmax(-1), index(device, 1, 2, 3, 4, 1, 2).view(2, 3)
    lengths = index(device, 6, 5), index(device, 3, 2)
    made = torch.ops.aten._ctc_loss.Tensor(scores, targets, *lengths)
    backward = torch.ops.aten._ctc_loss_backward.Tensor
    return backward(torch.ones_like(made[0]), scores, targets, *lengths, *made, 0)


def labels(device: str) -> torch.Tensor:
    return (torch.arange(18) % 4).view(2, 3, 3).to(device)


# By the predicate that reads the setting: the operators and their calls.
DECLINED: dict[str, list[tuple[str, Call]]] = {
    "convolution_backward_served": [
        ("aten::convolution_backward_overrideable", filter_gradient(getattr(F, f"conv{kind}{dims}d"), dims))
        for kind in ("", "_transpose")
        for dims in (1, 2, 3)
    ],
    "takes_gradient": [
        ("aten::avg_pool2d_backward", pooling(F.avg_pool2d, 2, 3, 1)),
        ("aten::_adaptive_avg_pool2d_backward", pooling(F.adaptive_avg_pool2d, 2, 4)),
        ("aten::adaptive_max_pool2d_backward", pooling(F.adaptive_max_pool2d, 2, 4)),
        ("aten::max_pool2d_with_indices_backward", pooling(F.max_pool2d, 2, 3, 1)),
        ("aten::max_pool3d_with_indices_backward", pooling(F.max_pool3d, 3, 3, 1)),
    ],
    "resample_backward_served": [
        *(interpolation(f"upsample_nearest{dims}d", dims) for dims in (1, 2, 3)),
        *(interpolation(f"_upsample_nearest_exact{dims}d", dims) for dims in (1, 2, 3)),
        interpolation("upsample_linear1d", 1, False),
        interpolation("upsample_bilinear2d", 2, False),
        interpolation("upsample_trilinear3d", 3, False),
        interpolation("upsample_bicubic2d", 2, False),
        interpolation("_upsample_bilinear2d_aa", 2, False),
        interpolation("_upsample_bicubic2d_aa", 2, False),
    ],
    "nll_loss2d_forward_served": [
        ("aten::nll_loss2d_forward", lambda d: F.nll_loss(x(d, 2, 4, 3, 3), labels(d))),
    ],
    "ctc_gradients_served": [
        ("aten::_ctc_loss_backward", ctc_loss),
        ("aten::_ctc_loss_backward.Tensor", ctc_loss_with_lengths_on_the_device),
    ],
    "cumulate_served": [
        ("aten::cumsum", lambda d: x(d, 50).cumsum(0)),
        ("aten::cumsum_", lambda d: x(d, 50).cumsum_(0)),
        ("aten::cumprod", lambda d: x(d, 50).cumprod(0)),
    ],
    "scatter_src_served": [("aten::scatter.src", lambda d: x(d, 4).scatter(0, index(d, 2, 0, 3), x(d, 3)))],
    "scatter_add_served": [
        ("aten::scatter_add", lambda d: x(d, 4).scatter_add(0, index(d, 2, 2, 3), x(d, 3))),
        ("aten::scatter_add_", lambda d: x(d, 4).scatter_add_(0, index(d, 2, 2, 3), x(d, 3))),
        ("aten::scatter.reduce", lambda d: x(d, 4).scatter(0, index(d, 2, 2, 3), x(d, 3), reduce="add")),
        ("aten::scatter_reduce.two", lambda d: x(d, 4).scatter_reduce(0, index(d, 2, 2, 3), x(d, 3), "prod")),
    ],
    "scatter_value_reduce_served": [
        ("aten::scatter.value_reduce", lambda d: x(d, 4).scatter(0, index(d, 2, 2), 3, reduce="multiply")),
    ],
    "index_copy_served": [
        ("aten::index_copy", lambda d: x(d, 4, 3).index_copy(0, index(d, 2, 0), x(d, 2, 3))),
    ],
    "index_add_served": [
        ("aten::index_add", lambda d: x(d, 4, 3).index_add(0, index(d, 2, 2), x(d, 2, 3))),
        ("aten::index_add_", lambda d: x(d, 4, 3).index_add_(1, index(d, 2, 2), x(d, 4, 2))),
    ],
    "embedding_dense_backward_served": [
        (
            "aten::embedding_dense_backward",
            gradient(lambda t: F.embedding(index(t.device.type, 1, 1, 3), t), 4, 3),
        ),
    ],
    "put_served": [
        ("aten::put_", lambda d: x(d, 4).put_(index(d, 2, 0), x(d, 2))),
        ("aten::put_", lambda d: x(d, 4).put_(index(d, 2, 2), x(d, 2), accumulate=True)),
    ],
    "index_put_served": [
        ("aten::_index_put_impl_", lambda d: x(d, 4).index_put((index(d, 2, 0),), x(d, 2))),
        ("aten::_index_put_impl_", lambda d: x(d, 4).index_put((index(d, 2, 2),), x(d, 2), accumulate=True)),
    ],
}

# Calls that repeat: each element depends on one calculation, is an exact sum, or muDNN has a mode for it.
KEPT: list[tuple[str, Call]] = [
    (
        "aten::convolution_backward_overrideable",
        gradient(lambda t: F.conv2d(t, x(t.device.type, 3, 3, 2, 2)), 2, 3, 6, 6),
    ),
    ("aten::cumsum", lambda d: x(d, 50).mul(9).long().cumsum(0)),
    ("aten::scatter.value", lambda d: x(d, 4).scatter(0, index(d, 2, 2), 3)),
    ("aten::gather", lambda d: x(d, 4).gather(0, index(d, 2, 2))),
    ("aten::nll_loss_forward", lambda d: F.nll_loss(x(d, 18, 4), labels(d).flatten())),
    ("aten::bmm", lambda d: torch.bmm(x(d, 2, 3, 4), x(d, 2, 4, 5))),
]
SETTINGS = ("torch.use_deterministic_algorithms", "torch.backends.mudnn.deterministic")


@contextmanager
def repeating(setting: str) -> Iterator[None]:
    if setting == "torch.backends.mudnn.deterministic":
        with torch.backends.mudnn.flags(deterministic=True):
            yield
        return
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with warnings.catch_warnings():
            # A provider without a deterministic kernel warns.
            warnings.filterwarnings("ignore", message=".*deterministic", category=UserWarning)
            yield
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.fixture
def calls_by_provider(musa) -> Callable[[str], tuple[int, int]]:
    """A function that returns how many calls of an operator muDNN and other providers handled."""

    def calls(op: str) -> tuple[int, int]:
        rows = musa.ops.explain(op)["candidates"]
        total = sum(row["calls"] for row in rows)
        by_mudnn = sum(row["calls"] for row in rows if row["provider"] == "mudnn")
        return by_mudnn, total - by_mudnn

    return calls


def check(calls: Callable[[str], tuple[int, int]], op: str, call: Call, by_mudnn: bool) -> None:
    """Calls on both devices, and compares the results and the provider of the operator."""
    before = calls(op)
    found = call("musa")
    after = calls(op)
    served, others = after[0] - before[0], after[1] - before[1]
    assert (served > 0, others > 0) == (by_mudnn, not by_mudnn), (op, served, others)
    torch.testing.assert_close(found.cpu(), call("cpu"), rtol=1e-4, atol=1e-5)  # in another order


@pytest.mark.parametrize("predicate", DECLINED)
@pytest.mark.filterwarnings("ignore:The reduce argument of torch.scatter:UserWarning")
def test_operators_without_a_documented_order_are_declined(musa, calls_by_provider, predicate):
    for op, call in DECLINED[predicate]:
        check(calls_by_provider, op, call, by_mudnn=True)
        for setting in SETTINGS:
            with repeating(setting):
                check(calls_by_provider, op, call, by_mudnn=False)
        check(calls_by_provider, op, call, by_mudnn=True)


@pytest.mark.parametrize("setting", SETTINGS)
def test_operators_that_repeat_are_kept(musa, calls_by_provider, setting):
    for op, call in KEPT:
        with repeating(setting):
            check(calls_by_provider, op, call, by_mudnn=True)


@pytest.mark.once
def test_every_function_that_reads_the_setting_has_a_case():
    readers = set()
    for path in SOURCES.glob("*.cpp"):
        function = ""
        for line in path.read_text().splitlines():
            if head := re.match(r"(?:[\w:]+ )+(\w+)(?:\(| =)", line):
                function = head[1]
            if "must_repeat()" in line:
                readers.add(function)
    assert readers - {"multiply_into"} == set(DECLINED)  # that function passes the setting to muDNN
