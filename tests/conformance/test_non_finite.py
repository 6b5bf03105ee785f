# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""NaN and infinities in any floating point argument: results on the device have them where the CPU's have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput
from torch.utils._pytree import tree_flatten, tree_unflatten

from tests.conformance import operators
from tests.conformance.comparison import Mismatch, Outcome, outcome_of, require_same_outcome
from tests.conformance.orders import ORDERS, order
from tests.conformance.places import settled
from tests.conformance.tolerances import Tolerance
from tests.conformance.transfer import to_device
from tests.conformance.variants import arguments_on

VALUES = (float("nan"), float("inf"), float("-inf"))
_ROUNDING = Tolerance(rtol=1e-3, atol=1e-3)  # other suites judge finite values
_EVERY = 3  # of the operators, in the sampled run

_MEAN = "the mean of infinities is their sum by their number; torch's recurrence makes it NaN"
_AFFINE = "CUDA and the packs scale x - mean; the CPU scales both, which is NaN for an infinite weight"
_OUTSIDE = "samples outside the image are 0, as on CUDA; the CPU multiplies them by a weight that is NaN"
_MEANS = ("var_mean", "var_mean.unbiased", "std_mean", "std_mean.unbiased", "native_layer_norm")
_NORMS = (
    *("native_group_norm", "native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update"),
    *("nn.functional.group_norm", "nn.functional.instance_norm", "nn.functional.batch_norm"),
)
_SAMPLERS = ("nn.functional.grid_sample", "grid_sampler_2d", "grid_sampler_3d")
_CHUNKED = tuple(f"nn.functional.linear_cross_entropy.{mode}" for mode in ("chunked", "chunked_none"))
# Operators whose results for such arguments are open, each with the reason.
OPEN = {
    **dict.fromkeys(_MEANS, _MEAN),
    **dict.fromkeys(_NORMS, _AFFINE),
    **dict.fromkeys(_SAMPLERS, _OUTSIDE),
    "cdist": "for p = 0 a NaN differs from every number and counts, as on CUDA; the CPU's distance is NaN",
    "nn.functional.pdist": "as cdist",
    **dict.fromkeys(("quantile", "nanquantile"), "a quantile outside [0, 1] fails an assertion of a kernel"),
    "unique": "with dim, the CPU sorts slices by comparisons that NaN does not order, and leaves duplicates",
    **dict.fromkeys(_CHUNKED, "torch chooses the order of the sums by the device's name"),
    **dict.fromkeys(
        [f"nn.functional.max_unpool{dims}d" for dims in (1, 2, 3)],
        "any element of one index is kept",
    ),
    **dict.fromkeys(operators.TRANSFORMS, "the order of the sums decides whether one of them is inf - inf"),
    "prod": "a partial product that underflows to 0 makes an infinity NaN; kernels multiply in another order",
    "nn.functional.gelu": "infinity is its own result; oneDNN's kernel for AVX-512 makes it NaN on the CPU",
    "nn.functional.binary_cross_entropy": "an input outside [0, 1] fails an assertion of the kernel",
}
# The degree of a polynomial is converted to an integer, which is undefined for NaN.
_DEGREE = "polynomial"
# muDNN selects the gradients of elements that were kept; torch multiplies by the mask.
_OPEN_ON_MUDNN = ("native_dropout_backward",)
# LAPACK promises nothing for matrices with such elements, and may end the process.
_FACTORIZATIONS = {
    *(
        "linalg",
        "lu",
        "svd",
        "qr",
        "ormqr",
        "geqrf",
        "eig",
        "cholesky",
        "pinverse",
        "logdet",
        "inverse",
        "solve",
    ),
    "lobpcg",
}


def _cases(full: bool, provider: str) -> list[operators.Case]:
    cases = [
        case
        for case in operators.float_cases()
        if case.name not in OPEN
        and not _FACTORIZATIONS & set(re.split("[._]", case.name))
        and _DEGREE not in case.name
        and not (provider != "ported" and case.name in _OPEN_ON_MUDNN)
    ]
    return cases if full else cases[::_EVERY]


def _with_value(arguments: tuple) -> Iterator[tuple[str, tuple]]:
    """Copies of the arguments with one element of one floating point tensor replaced."""
    leaves, _ = tree_flatten(arguments)
    for number, leaf in enumerate(leaves):
        if not _takes(leaf):
            continue
        for value in VALUES:
            copies, spec = tree_flatten(to_device("cpu", *arguments))
            place = tuple(size // 2 for size in leaf.shape)
            with torch.no_grad():
                copies[number][place] = value
            yield f"{value} in tensor {number}", tuple(tree_unflatten(copies, spec))


def _takes(leaf: Any) -> bool:
    return (
        isinstance(leaf, torch.Tensor)
        and leaf.is_floating_point()
        and leaf.layout is torch.strided
        and not leaf.is_nested
        and leaf.numel() > 0
    )


def _call(op: Any, arguments: tuple) -> Outcome:
    first, args, kwargs = arguments
    return outcome_of(lambda: op(first, *args, **kwargs))


def judge(case: operators.Case, device: str, full: bool) -> tuple[int, list[str]]:
    """The number of calls that were compared with the CPU's, and the differences."""
    judged, wrong = 0, []
    for sample in case.samples(full):
        for what, arguments in _with_value((sample.input, sample.args, sample.kwargs)):
            sample.input, sample.args, sample.kwargs = arguments
            there = arguments_on(case.op, sample, device)
            expected = _call(case.op, to_device("cpu", *arguments))
            with torch.device(device):
                actual = _call(case.op, there)
            judged += 1
            try:
                if expected.error is None and actual.error is None:
                    actual.value = settled(case.op, arguments, expected.value, actual.value)
                require_same_outcome(expected, actual, device, tolerance=_ROUNDING)
            except Mismatch as mismatch:
                wrong.append(f"{case}, {what}: {' '.join(str(mismatch).split())[:220]}")
    return judged, wrong


@pytest.mark.parametrize("name", ORDERS)
def test_nan_and_infinities_are_where_the_cpu_has_them(name: str, device: str, full: bool) -> None:
    judged, wrong = 0, []
    with order(name):
        for case in _cases(full, name):
            calls, differences = judge(case, device, full)
            judged += calls
            wrong += differences
    assert not wrong, f"{len(wrong)} of {judged} calls:\n" + "\n".join(wrong)
    assert judged > 200


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("outside", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("name", ORDERS)
def test_a_bicubic_sample_at_nan_is_nan(name: str, outside: str, align: bool, device: str) -> None:
    image, grid = torch.arange(32.0).view(1, 2, 4, 4), torch.zeros(1, 3, 2, 2)
    grid[0, 0, 0, 0] = grid[0, 1, 1, 1] = float("nan")

    def sampled(on: str) -> tuple[torch.Tensor, torch.Tensor]:
        where = grid.to(on, copy=True).requires_grad_()
        result = torch.nn.functional.grid_sample(image.to(on), where, "bicubic", outside, align)
        return result.detach().cpu(), torch.autograd.grad(result.sum(), where)[0].cpu()

    with order(name):
        result, gradient = sampled(device)
    at_nan = grid.isnan().any(-1).expand(2, 3, 2)
    assert torch.equal(result[0].isnan(), at_nan)
    torch.testing.assert_close(result, sampled("cpu")[0], equal_nan=True)
    assert gradient[~grid.isnan().any(-1)].isfinite().all()


def test_a_result_without_its_nan_is_reported(device: str) -> None:
    class Case:
        @staticmethod
        def op(x: torch.Tensor) -> torch.Tensor:
            return x.nan_to_num() if x.device.type == device else x.clone()

        @staticmethod
        def samples(full: bool) -> list[SampleInput]:
            return [SampleInput(torch.ones(3))]

    judged, wrong = judge(Case, device, False)
    assert judged == len(wrong) == 3
