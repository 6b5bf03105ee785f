# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Single operators: call overhead on small tensors, and bandwidth on a large one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from .measure import Effort, Row, interleaved
from .providers import served_by

SMALL_BAR = 1.2
LARGE_BAR = 0.7
LARGE_ELEMENTS = 16_000_000


@dataclass(frozen=True)
class Operator:
    """``run`` is called with float32 tensors of ``shapes``, with the same values on both devices."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    run: Callable[..., torch.Tensor]
    bar: float = SMALL_BAR
    large: bool = False


SMALL = (
    Operator("add 32x32", ((32, 32), (32, 32)), torch.add),
    Operator("relu 32x32", ((32, 32),), torch.relu),
    Operator("mm 64x64", ((64, 64), (64, 64)), torch.mm),
    Operator("linear 64", ((16, 64), (64, 64), (64,)), F.linear),
    Operator("layer_norm 16x64", ((16, 64), (64,), (64,)), lambda x, w, b: F.layer_norm(x, (64,), w, b)),
    Operator("softmax 16x64", ((16, 64),), lambda x: torch.softmax(x, 1)),
    Operator("cat 2 of 32x32", ((32, 32), (32, 32)), lambda a, b: torch.cat((a, b))),
    Operator("copy_ 32x32", ((32, 32), (32, 32)), torch.Tensor.copy_),
    Operator("sum 32x32", ((32, 32),), torch.sum),
    Operator("view 32x32", ((32, 32),), lambda x: x.view(1024)),
    Operator("t 32x64", ((32, 64),), torch.t),
)


def large(elements: int) -> Operator:
    return Operator(
        f"a + b on {elements:.1e} floats", ((elements,), (elements,)), torch.add, LARGE_BAR, large=True
    )


def check_same(name: str, value: torch.Tensor, expected: torch.Tensor) -> None:
    """Raises if results differ, because the time would be meaningless."""
    torch.testing.assert_close(
        value.cpu(),
        expected.cpu(),
        msg=lambda text: f"{name}: the two devices disagree, nothing to time: {text}",
    )


def measure(operator: Operator, device: torch.device, baseline: torch.device, effort: Effort) -> Row:
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator) for shape in operator.shapes]
    here = [tensor.clone().to(device) for tensor in inputs]
    there = [tensor.clone().to(baseline) for tensor in inputs]
    run = operator.run
    with torch.no_grad():
        check_same(operator.name, run(*here), run(*there))
        served = served_by(lambda: run(*here), device)
        pair = interleaved(lambda: run(*here), device, lambda: run(*there), baseline, effort)
    group, scale, unit = ("large tensor", 1e3, "ms") if operator.large else ("small operator", 1e6, "µs")
    times = (pair.value * scale, pair.baseline * scale)
    return Row(
        group, operator.name, *times, unit, operator.bar, ratio=pair.ratio, spread=pair.spread, served=served
    )


def measure_small(device: torch.device, baseline: torch.device, effort: Effort) -> Iterator[Row]:
    for operator in SMALL:
        yield measure(operator, device, baseline, effort)


def measure_large(
    device: torch.device, baseline: torch.device, effort: Effort, elements: int = LARGE_ELEMENTS
) -> Iterator[Row]:
    yield measure(large(elements), device, baseline, effort)
