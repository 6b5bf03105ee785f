# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Values that the innermost loop of a C++ kernel does not change are loaded once, before the loop."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from .comparison import assert_same

pytestmark = pytest.mark.once


def compiled(program: Callable, *inputs: torch.Tensor, **options) -> tuple[torch.Tensor, str]:
    """The result and the source of the kernels."""
    from torch._inductor.utils import run_and_get_code

    result, [code] = run_and_get_code(torch.compile(program, fullgraph=True, **options), *inputs)
    return result, code


def scaled_rows(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return (x * scale[:, None]).relu()


def normalized(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(F.layer_norm(x, x.shape[-1:])) * x


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("length", [64, 77])
@pytest.mark.parametrize("dynamic", [False, True])
def test_rows(compiler: None, dtype: torch.dtype, length: int, dynamic: bool) -> None:
    x, scale = torch.randn(5, length, dtype=dtype, device="musa"), torch.randn(5, dtype=dtype, device="musa")
    result, code = compiled(scaled_rows, x, scale, dynamic=dynamic)
    assert_same(result, scaled_rows(x, scale), 1e-2 if dtype == torch.bfloat16 else 1e-5)
    [declared] = re.findall(r"const auto (invariant\d+) = (in_ptr\d+\[.*\]);", code)
    assert re.search(rf"auto tmp\d+ = {declared[0]};", code)
    vectors = code[code.index(declared[0]) :].split("C10_UNLIKELY")[0]
    assert vectors.count(declared[1]) == 1  # in the declaration, and not in the loop over vectors


def test_several_loops_over_a_row(compiler: None) -> None:
    x = torch.randn(9, 200, device="musa")
    result, code = compiled(normalized, x)
    assert_same(result, normalized(x))
    names = re.findall(r"const auto (invariant\d+) =", code)
    # The sum and the variance for the result; since torch 2.13 also the sum in the variance's own loop.
    assert len(names) == len(set(names)) >= 2
    assert not re.search(r"auto tmp\d+ = out_ptr\d+\[", code.split("C10_UNLIKELY")[0])


def test_a_result_that_replaces_its_operand(compiler: None) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x.sub_(x.mean(1, keepdim=True)).mul_(x[:, :1])

    x = torch.randn(6, 130, device="musa")
    difference = x - x.mean(1, keepdim=True)
    # Computed out of place: in eager mode, mul_ reads elements of x after it has overwritten them.
    expected = difference * difference[:, :1]
    assert_same(compiled(program, x)[0], expected)
    assert_same(x, expected)


def test_no_declaration_is_between_collapsed_loops(compiler: None) -> None:
    x, scale = torch.randn(3, 4096, device="musa"), torch.randn(3, device="musa")
    with torch._inductor.config.patch({"cpp.threads": 2}):
        result, code = compiled(scaled_rows, x, scale)
    assert "collapse(2)" in code and "invariant" not in code
    assert_same(result, scaled_rows(x, scale))


def test_transposed_operands(compiler: None) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x.t() * y[:, :1] + y).contiguous()

    x, y = torch.randn(70, 50, device="musa"), torch.randn(50, 70, device="musa")
    result, code = compiled(program, x, y)
    assert "transpose_mxn" in code
    assert_same(result, program(x, y))


def test_sums_of_transposed_operands(compiler: None) -> None:
    """Here torch requires a relation between the classes of the bodies of one and of two vectorised loops."""

    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x.transpose(1, 2) * y).sum(1)

    x, y = torch.randn(4, 64, 32, device="musa"), torch.randn(4, 32, 64, device="musa")
    assert_same(compiled(program, x, y)[0], program(x, y))
