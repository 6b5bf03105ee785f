# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Every operator takes on the device the dtypes that it takes on CUDA, forward and backward."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.conformance import cuda_dtypes
from tests.conformance.catalogue import DTYPE_SUITE
from tests.harness.device import DEVICE, computes_float64
from tests.harness.skips import skip_permanently


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" not in metafunc.fixturenames:
        return
    gaps = cuda_dtypes.gaps() if DEVICE == "musa" else {}
    cases = []
    for pair in cuda_dtypes.pairs():
        if pair.sampled or metafunc.config.getoption("--full"):
            reason = gaps.get((pair.name, pair.kind))
            marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
            cases.append(pytest.param(pair, id=str(pair), marks=marks))
    metafunc.parametrize("case", cases)


@pytest.mark.conformance(*DTYPE_SUITE)
def test_dtypes_of_cuda_are_taken(case: cuda_dtypes.Pair, device: str, full: bool, count: Callable) -> None:
    if case.kind in ("float64", "complex128") and not computes_float64():
        skip_permanently("float64", "the CPU computes these dtypes, of which CUDA takes more")
    judged = 0
    for sample in case.samples(full, requires_grad=False):
        case.judge_forward(sample, device)
        judged += 1
    if case.differentiable:
        for sample in case.samples(full, requires_grad=True):
            case.judge_gradient(sample, device)
            judged += 1
    count(judged)


@pytest.mark.once
def test_every_gap_names_a_pair_of_the_database() -> None:
    known = {(pair.name, pair.kind) for pair in cuda_dtypes.pairs()}
    assert set(cuda_dtypes.gaps()) <= known


_GAP = '[[gap]]\noperator = "{name}"\ndtype = "int8"\nreason = "{reason}"\n'


@pytest.mark.once
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "".join(_GAP.format(name=f"op{i}", reason="there is no kernel for it") for i in range(16)),
            "at most 15",
        ),
        (_GAP.format(name="op", reason="slow"), "must say why"),
        (2 * _GAP.format(name="op", reason="there is no kernel for it"), "listed twice"),
    ],
    ids=["too many", "unexplained", "repeated"],
)
def test_a_bad_list_of_gaps_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cuda_dtypes.parse(text)


@pytest.mark.once
def test_a_wrong_value_in_a_dtype_that_the_cpu_lacks_is_noticed() -> None:
    (pair,) = [pair for pair in cuda_dtypes.pairs() if (pair.name, pair.kind) == ("histc", "int32")]

    class Wrong:
        full_name, decorators = "histc", ()
        supported_dtypes = pair.op.supported_dtypes

        def __call__(self, x: torch.Tensor, **kwargs: object) -> torch.Tensor:
            # The CPU's own counts; the "device", here the CPU in int32, loses one of them.
            counts = torch.histc(x.double(), **kwargs)
            return counts if x.dtype is torch.float64 else counts.sub(counts.gt(0).double()).to(x.dtype)

    sample = next(sample for sample in pair.samples(True, False) if sample.input.numel() > 3)
    with pytest.raises(AssertionError, match="cpu"):
        cuda_dtypes.Pair(Wrong(), torch.int32).judge_forward(sample, "cpu")
