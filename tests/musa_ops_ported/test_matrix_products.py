# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Products in dtypes that muDNN does not multiply: tiles of large results, and single elements."""

from __future__ import annotations

import pytest
import torch

from tests.harness.device import computes_float64

# A block has tiles of 64 x 64 elements, of complex numbers 32 x 32, and 16 terms of each sum.
SIZES = [(64, 64, 64), (65, 17, 130), (16, 16, 16), (15, 40, 70), (70, 40, 15), (33, 100, 31)]
DTYPES = [torch.float64, torch.complex64, torch.complex128, torch.int64, torch.int8]
TOLERANCES = {torch.float64: 1e-13, torch.complex128: 1e-13, torch.complex64: 1e-5}


def numbers(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    return (
        torch.randint(-9, 9, shape)
        if not dtype.is_floating_point and not dtype.is_complex
        else torch.randn(*shape, dtype=dtype)
    )


@pytest.fixture(autouse=True)
def on_the_device(musa):
    before = sum(row["count"] for row in musa.ops.fallback_report())
    with musa.ops.prefer("*", "mudnn", "ported", "runtime", "host-copy"):
        yield
    if computes_float64():
        assert sum(row["count"] for row in musa.ops.fallback_report()) == before


def check(actual: torch.Tensor, expected: torch.Tensor) -> None:
    tolerance = TOLERANCES.get(expected.dtype, 0)
    scale = float(expected.abs().max()) if tolerance else 0
    torch.testing.assert_close(actual.cpu(), expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_products_of_all_orders_of_dimensions(size: tuple[int, int, int], dtype: torch.dtype) -> None:
    rows, depth, columns = size
    x, y = numbers(3, rows, depth, dtype=dtype).to(dtype), numbers(3, depth, columns, dtype=dtype).to(dtype)
    expected = x @ y
    for first in (x.to("musa"), x.mT.contiguous().to("musa").mT, x.repeat(1, 1, 2).to("musa")[..., :depth]):
        for second in (y.to("musa"), y.mT.contiguous().to("musa").mT):
            check(first @ second, expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sums_with_an_expanded_operand(dtype: torch.dtype) -> None:
    x, y = numbers(40, 20, dtype=dtype).to(dtype), numbers(2, 20, 35, dtype=dtype).to(dtype)
    added = numbers(35, dtype=dtype).to(dtype)
    expected = torch.baddbmm(added.expand(2, 40, 35), x.expand(2, 40, 20), y, beta=2, alpha=-3)
    on_device = [part.to("musa") for part in (added, x, y)]
    actual = torch.baddbmm(
        on_device[0].expand(2, 40, 35), on_device[1].expand(2, 40, 20), on_device[2], beta=2, alpha=-3
    )
    check(actual, expected)


def test_a_result_that_is_an_operand_is_computed_from_its_old_values() -> None:
    x = torch.randn(48, 48, dtype=torch.float64)
    on_device = x.to("musa")
    torch.mm(on_device, on_device, out=on_device)
    check(on_device, x @ x)


def test_values_outside_the_operands_are_not_read() -> None:
    """NaN surrounds the operands, whose sizes are no multiples of a tile's."""
    x, y, out = (torch.full((100, 100), float("nan"), dtype=torch.float64) for _ in range(3))
    x[:66, :18], y[:18, :66] = torch.randn(66, 18), torch.randn(18, 66)
    on_device = [part.to("musa") for part in (x, y, out)]
    torch.mm(on_device[0][:66, :18], on_device[1][:18, :66], out=on_device[2][:66, :66])
    actual = on_device[2].cpu()
    check(actual[:66, :66], x[:66, :18] @ y[:18, :66])
    assert actual[66:].isnan().all() and actual[:, 66:].isnan().all()


def test_infinities_of_complex_sums_are_not_multiplied_by_one() -> None:
    added = torch.full((1, 20, 20), complex(float("inf"), 0), dtype=torch.complex128)
    x = torch.zeros(1, 20, 20, dtype=torch.complex128)
    actual = torch.baddbmm(added.to("musa"), x.to("musa"), x.to("musa"), beta=1, alpha=-1).cpu()
    assert (actual.real == float("inf")).all() and (actual.imag == 0).all()
