# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Operators with many rows, long rows and large batches are as near to float64 as the CPU's: sizes.py.

The emulator's libraries compute with torch's CPU functions, whose sums in 16-bit types and norms of long
vectors round more than a GPU's, so an error of twice the CPU's is accepted.
"""

from __future__ import annotations

import pytest
import torch

from tests.conformance import sizes
from tests.harness import parts

# Larger ones take minutes in the emulator; tests/gpu runs them.
MOST, MOST_BY_DEFAULT = 4_000_000, 70_000
CASES = {case.name: case for case in sizes.cases(MOST)}
QUICK = [name for name, case in CASES.items() if case.elements <= MOST_BY_DEFAULT]
OTHERS = [name for name in CASES if name not in set(QUICK)]
ALWAYS = ("layer_norm-65537x33-plain", "conv2d_point_plane-plain-float32")


def check(case: sizes.Case, device: str) -> None:
    operands = sizes.operands_of(case)
    expected = sizes.reference(case, operands)
    actual = sizes.results(case, operands, device, case.dtype)
    found = [sizes.error_of(one, exact) for one, exact in zip(actual, expected, strict=True)]
    if max(found) <= case.allowed:
        return
    cpu = sizes.results(case, operands, "cpu", case.dtype)
    own = [sizes.error_of(one, exact) for one, exact in zip(cpu, expected, strict=True)]
    bad = [
        f"result {index}: {error:.2g} off, the CPU {other:.2g}, allowed {case.allowed:.2g}"
        for index, (error, other) in enumerate(zip(found, own, strict=True))
        if error > max(case.allowed, 2 * other)
    ]
    assert not bad, f"{case.name}: {'; '.join(bad)}"


@pytest.mark.parametrize("name", parts.sample(QUICK, 29))
def test_small_sizes(device: str, name: str) -> None:
    check(CASES[name], device)


@pytest.mark.parametrize("name", parts.sample(OTHERS, 10**6, always=ALWAYS))
def test_large_sizes(device: str, name: str) -> None:
    check(CASES[name], device)


def test_wrong_results_are_found() -> None:
    """Unwritten memory, one wrong element, another dtype's rounding, NaN and another shape."""
    exact = torch.randn(1_000, dtype=torch.float64)
    near = exact.float()
    assert sizes.error_of(near, exact) < 1e-6
    one = near.clone()
    one[17] += 0.01
    for wrong in (torch.zeros(1_000), one, exact.bfloat16(), near * float("nan"), near[:-1], near.long()):
        assert sizes.error_of(wrong, exact) > 1e-4
    assert sizes.error_of(torch.tensor([1, 2]), torch.tensor([1, 3])) == float("inf")


def test_a_kernel_that_leaves_the_gradient_of_the_weight_unwritten_is_found() -> None:
    case = CASES["layer_norm-1000x7-columns"]
    operands = sizes.operands_of(case)
    expected = sizes.reference(case, operands)
    actual = sizes.results(case, operands, "cpu", torch.float32)
    actual[2] = torch.zeros_like(actual[2])
    assert sizes.error_of(actual[1], expected[1]) < case.allowed < sizes.error_of(actual[2], expected[2])
