# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Branches, loops, scans and nested regions in compiled functions: graphs within graphs."""

from __future__ import annotations

import pytest
import torch

from tests.musa_compile.comparison import assert_same

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("musa", "compiler")]


def test_cond(backend):
    def f(predicate, x):
        return torch.cond(predicate, lambda x: x.sin(), lambda x: x.cos(), (x,))

    compiled = torch.compile(f, backend=backend, fullgraph=True)
    x = torch.randn(4, device="musa")
    assert_same(compiled(torch.tensor(True, device="musa"), x), x.sin())
    assert_same(compiled(torch.tensor(False, device="musa"), x), x.cos())


def test_while_loop(backend):
    from torch._higher_order_ops import while_loop

    def f(i, x):
        return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (i, x))

    compiled = torch.compile(f, backend=backend, fullgraph=True)
    _, result = compiled(torch.tensor(0, device="musa"), torch.ones(3, device="musa"))
    assert_same(result, torch.full((3,), 8.0))


def test_scan(backend):
    from torch._higher_order_ops.scan import scan

    def f(x):
        return scan(lambda carry, row: (carry + row, carry + row), torch.zeros(3, device="musa"), x)[1]

    x = torch.randn(5, 3, device="musa")
    assert_same(torch.compile(f, backend=backend, fullgraph=True)(x), x.cumsum(0))


def test_associative_scan(backend):
    from torch._higher_order_ops.associative_scan import associative_scan

    def f(x):
        return associative_scan(lambda a, b: a + b, x, 0, combine_mode="generic")

    x = torch.randn(5, 3, device="musa")
    assert_same(torch.compile(f, backend=backend, fullgraph=True)(x), x.cumsum(0))


def test_nested_region(backend):
    @torch.compiler.nested_compile_region
    def region(x):
        return x.sin() * 2

    def f(x):
        return region(region(x))

    x = torch.randn(8, device="musa")
    assert_same(torch.compile(f, backend=backend, fullgraph=True)(x), (x.sin() * 2).sin() * 2)
