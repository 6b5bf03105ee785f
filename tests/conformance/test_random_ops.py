# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Operators that draw random numbers: repeatable from a seed, different for another, of the same
distribution.

The device has its own generator, so its numbers may differ from the CPU's. The properties that do not depend
on the draw are compared with the CPU's, and the mean over many draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest
import torch
from torch.testing._internal import common_methods_invocations

from tests.conformance import operators, variants
from tests.conformance.catalogue import suite
from tests.conformance.comparison import Mismatch, require_same
from tests.conformance.tolerances import DEFAULT, Tolerance
from tests.conformance.transfer import tensors_in, to_device

_SEEDS = range(100, 108)
_DRAWS = 48
# Many draws of many samples would take minutes.
_SAMPLES_WITH_MEANS = 3
# Two means of independent draws, in units of their standard error. Seeds are fixed, so this decides once.
_STANDARD_ERRORS = 6.0


@pytest.fixture(autouse=True)
def _database_leaves_seeds_alone() -> Iterator[None]:
    # The database wraps these operators so that every call draws the same numbers.
    with mock.patch.object(
        common_methods_invocations, "wrapper_set_seed", lambda op, *args, **kwargs: op(*args, **kwargs)
    ):
        yield


@suite("op", "random")
def test_draws_keep_the_promises_of_a_seed(
    case: operators.Case, device: str, full: bool, count: Callable
) -> None:
    samples = 0
    for samples, sample in enumerate(case.samples(full), start=1):
        try:
            _judge(
                case.op,
                sample,
                device,
                compare_means=samples <= _SAMPLES_WITH_MEANS,
                tolerance=case.tolerance,
            )
        except Mismatch as error:
            raise Mismatch(f"sample {samples - 1}: {error}\n{sample}") from error
    count(samples)


def _judge(
    op: Callable,
    sample: Any,
    device: str,
    *,
    compare_means: bool = True,
    tolerance: Tolerance = DEFAULT,
) -> None:
    def draw(where: str, seed: int) -> Any:
        first, args, kwargs = to_device(where, sample.input, sample.args, sample.kwargs)
        torch.manual_seed(seed)
        return op(first, *args, **kwargs)

    on_cpu = [draw("cpu", seed) for seed in _SEEDS]
    on_device = [draw(device, seed) for seed in _SEEDS]
    for seed, expected in zip(_SEEDS, on_device):
        if not _equal(expected, draw(device, seed), device):
            raise Mismatch(f"two draws on {device} from seed {seed} differ")
    different = sum(not _equal(on_cpu[0], other, "cpu") for other in on_cpu[1:])
    if not different:
        # No number is drawn for these arguments (a dropout of probability 0): the values are defined.
        variants.forward(_COMPARED.get(op.name, op), sample, device, tolerance=tolerance)
        return
    for expected, actual in zip(on_cpu, on_device):
        require_same(expected, actual, device, values=False)
    # If the CPU's draws seldom differ, equal draws do not show that a generator ignores its seed.
    if different >= len(_SEEDS) // 2 and all(_equal(on_device[0], other, device) for other in on_device[1:]):
        raise Mismatch(f"{len(_SEEDS)} seeds give the same numbers on {device}")
    if not compare_means:
        return
    _require_same_mean(
        [_bounded_mean(draw("cpu", 1000 + index)) for index in range(_DRAWS)],
        [_bounded_mean(draw(device, 5000 + index)) for index in range(_DRAWS)],
        device,
    )


def _attention(query: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """scaled_dot_product_attention by a fused kernel on the CPU too, where it takes only 4-d operands.

    The composed form keeps probabilities in other dtypes between the products.
    """
    attend = torch.nn.functional.scaled_dot_product_attention
    if query.dim() != 3 or query.device.type != "cpu":
        return attend(query, *args, **kwargs)
    four = [value[None] if isinstance(value, torch.Tensor) and value.dim() == 3 else value for value in args]
    return attend(query[None], *four, **kwargs)[0]


_COMPARED = {"nn.functional.scaled_dot_product_attention": _attention}


def _equal(left: Any, right: Any, device: str) -> bool:
    try:
        require_same(left, right, device)
    except Mismatch:
        return False
    return True


def _bounded_mean(value: Any) -> float:
    # The arc tangent gives every distribution a finite variance, including Cauchy and sharp exponentials.
    flat = [tensor.detach().cpu().reshape(-1).to(torch.complex128) for tensor in tensors_in(value)]
    joined = torch.view_as_real(torch.cat(flat))
    return torch.atan(joined.nan_to_num()).mean().item()


def _require_same_mean(expected: list[float], actual: list[float], device: str) -> None:
    left, right = torch.tensor(expected, dtype=torch.float64), torch.tensor(actual, dtype=torch.float64)
    standard_error = math.sqrt((left.var() + right.var()).item() / len(expected))
    distance = abs(left.mean() - right.mean()).item()
    if distance > _STANDARD_ERRORS * standard_error + 1e-3:
        raise Mismatch(
            f"the mean over {len(expected)} draws is {left.mean():.4f} on the cpu and "
            f"{right.mean():.4f} on {device}: "
            f"{distance:.4f} apart at a standard error of {standard_error:.4f}"
        )


def test_a_shifted_distribution_is_refused() -> None:
    generator = torch.Generator().manual_seed(0)
    draws = torch.rand(2, _DRAWS, generator=generator, dtype=torch.float64)
    _require_same_mean(draws[0].tolist(), draws[1].tolist(), "cpu")
    with pytest.raises(Mismatch, match="apart at a standard error"):
        _require_same_mean(draws[0].tolist(), (draws[1] + 0.5).tolist(), "cpu")


def test_a_generator_that_ignores_its_seed_is_refused() -> None:
    sample = common_methods_invocations.SampleInput(torch.rand(64))
    with pytest.raises(Mismatch, match="differ"):
        _judge(lambda x: torch.bernoulli(x, generator=_unseeded), sample, "cpu")


_unseeded = torch.Generator()
