# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Kernels index tensors of more elements than an int has values, and of a few elements less.

Such tensors fit into memory if an element is one byte. With --full each family of kernels runs on them, which
needs up to 4.5 GB.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

_SOURCES = Path(__file__).resolve().parents[2] / "packages" / "musa-ops-ported" / "csrc"
_STEPPING_LOOP = re.compile(
    r"for \((?P<type>\w+) (?P<index>\w+) = (?P<rest>[^;]*;[^;]*); (?P=index) \+= (?P<step>[^)]+)\)"
)
# A step of several threads may exceed the maximum of an int before the loop's condition ends it.
_THREADS = re.compile(r"[tT]hreads|blockDim|gridDim|\bstep\b")
_CONSTANT = re.compile(r"(k[A-Z]\w*|\d+)( \* (k[A-Z]\w*|\d+))*")


def narrow_loops(text: str) -> list[str]:
    """Loops over elements with steps of several threads, of which the index is an int."""
    found = []
    for loop in _STEPPING_LOOP.finditer(text):
        bound = loop["rest"].rpartition("<")[2].strip()
        narrow = loop["type"] in ("int", "int32_t") and _THREADS.search(loop["step"])
        if narrow and not _CONSTANT.fullmatch(bound):
            found.append(loop[0])
    return found


def test_no_loop_over_elements_counts_in_int() -> None:
    files = [path for suffix in ("*.mu", "*.muh", "*.h", "*.cpp") for path in sorted(_SOURCES.rglob(suffix))]
    wrong = {path.name: narrow_loops(path.read_text(encoding="utf-8")) for path in files}
    loops = sum(len(_STEPPING_LOOP.findall(path.read_text(encoding="utf-8"))) for path in files)
    assert {name: found for name, found in wrong.items() if found} == {}
    assert loops > 20


@pytest.mark.parametrize(
    ("loop", "narrow"),
    [
        ("for (int at = begin + threadIdx.x; at < end; at += kThreads) {", True),
        ("for (int i = blockIdx.x; i < count; i += gridDim.x) {", True),
        ("for (uint32_t at = begin + threadIdx.x; at < end; at += kThreads) {", False),
        ("for (int i = threadIdx.x; i < kDigits * kDigitCopies; i += kRadixThreads) {", False),
    ],
)
def test_the_rule_finds_such_a_loop(loop: str, narrow: bool) -> None:
    assert bool(narrow_loops(loop)) == narrow


# Family -> an operator on a tensor of ones (uint8), and the value of every element of its result.
FAMILIES: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], int]] = {
    "fill": (lambda x: x.fill_(7), 7),
    "unary": (lambda x: x.bitwise_not_(), 254),
    "binary": (lambda x: x.add_(x), 2),
    "binary with a number": (lambda x: x.mul_(3), 3),
    "comparison": (lambda x: x.eq_(1), 1),
    "comparison of another dtype": (lambda x: torch.eq(x, 1, out=x.view(torch.bool)), 1),
    "clamp": (lambda x: x.clamp_(2, 3), 2),
    "where": (lambda x: torch.where(x.view(torch.bool), x, 0), 1),
    "masked fill": (lambda x: x.masked_fill_(x.view(torch.bool), 5), 5),
    "copy": (lambda x: x.clone(), 1),
    "strided copy": (
        lambda x: x.copy_(torch.full((1,), 9, dtype=torch.uint8, device="musa").expand_as(x)),
        9,
    ),
    "concatenation": (lambda x: torch.cat([x[:7], x[7:]]), 1),
    "flip": (lambda x: x.flip(0), 1),
    "roll": (lambda x: x.roll(3), 1),
    "index of rows": (
        lambda x: x.view(-1, 4)[torch.arange(x.numel() // 4 - 9, x.numel() // 4, device="musa")],
        1,
    ),
    "index fill": (lambda x: x.index_fill_(0, torch.arange(x.numel() - 300, x.numel(), device="musa"), 1), 1),
    "sum": (lambda x: x.sum() == x.numel(), 1),
    "maximum": (lambda x: x.max(), 1),
    "argmax": (lambda x: x.argmax() >= 0, 1),
    "all": (lambda x: x.view(torch.bool).all(), 1),
    "count": (lambda x: x.count_nonzero() == x.numel(), 1),
    "random numbers": (lambda x: x.random_(4, 5), 4),
    "bernoulli": (lambda x: x.bernoulli_(1.0), 1),
}


@pytest.mark.full
@pytest.mark.parametrize("count", [2**31 - 100, 2**31 + 100], ids=["below", "above"])
@pytest.mark.parametrize("family", FAMILIES)
def test_kernels_reach_the_last_element(family: str, count: int, musa, ported) -> None:
    function, expected = FAMILIES[family]
    x = torch.ones(count, dtype=torch.uint8, device="musa")
    result = function(x).flatten()
    edges = torch.cat([result[:300], result[-300:]]).to(torch.uint8).cpu()
    assert edges.eq(expected).all(), edges.unique().tolist()
    del x, result
    torch.musa.empty_cache()
