# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Writes to overlapping memory are refused if torch's CPU operators refuse them."""

from __future__ import annotations

import functools
import re
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from tests.conformance.operators import OPS
from tests.harness.policies import POLICIES, policy, sampled

pytestmark = pytest.mark.once

SAMPLE_STEP = 8
REFUSED = re.compile(r"refers? to a single memory location|overlap", re.IGNORECASE)


def refusal(function: Callable[[], Any]) -> str | None:
    """Returns the call's error about overlapping memory, or None if it succeeds. Raises other errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function()
        except RuntimeError as error:
            if REFUSED.search(str(error)):
                return str(error)
            raise
    return None


def sample_of(op: OpInfo) -> SampleInput | None:
    """Returns a sample whose input has several elements."""
    supported = op.supported_dtypes("cpu")
    dtype = next((d for d in (torch.float32, torch.int64, torch.bool) if d in supported), None)
    if dtype is None:
        return None
    for sample in op.sample_inputs("cpu", dtype, requires_grad=False):
        tensor = sample.input
        if isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided and tensor.numel() > 1:
            return sample
    return None


def on(device: str, sample: SampleInput) -> SampleInput:
    return sample.transform(lambda leaf: leaf.clone().to(device) if isinstance(leaf, torch.Tensor) else leaf)


def shifted(tensor: torch.Tensor, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns a copy of the tensor, and a tensor of its shape that begins one element later in its memory."""
    base = torch.zeros(tensor.numel() + 1, dtype=tensor.dtype, device=device)
    first, second = (base[start : start + tensor.numel()].view(tensor.shape) for start in (0, 1))
    first.copy_(tensor)
    return first, second


def expanded_in_place(op: OpInfo, sample: SampleInput) -> None:
    """Calls the in-place form on a tensor whose rows all alias one row."""
    tensor = sample.input
    op.inplace_variant(tensor[:1].expand(tensor.shape), *sample.args, **sample.kwargs)


def expanded_out(op: OpInfo, sample: SampleInput) -> None:
    """Calls with an out= of the right shape whose elements all alias one element."""
    result = op(sample.input, *sample.args, **sample.kwargs)
    # CPU kernels of torch without the check, such as narrow_copy's, write all elements of the shape.
    room = result.new_zeros(result.numel())
    op(sample.input, *sample.args, **sample.kwargs, out=room[:1].expand(result.shape))


def expanded_one_of_outs(which: int, op: OpInfo, sample: SampleInput) -> None:
    """Calls with out= of several results of the right shapes, of which one aliases a single element."""
    results = op(sample.input, *sample.args, **sample.kwargs)
    outs = [torch.empty_like(result) for result in results]
    outs[which] = results[which].new_zeros(results[which].numel())[:1].expand(results[which].shape)
    op(sample.input, *sample.args, **sample.kwargs, out=tuple(outs))


def expanded_first_out(op: OpInfo, sample: SampleInput) -> None:
    expanded_one_of_outs(0, op, sample)


def expanded_second_out(op: OpInfo, sample: SampleInput) -> None:
    expanded_one_of_outs(1, op, sample)


SEVERAL_OUTS = {expanded_first_out: 0, expanded_second_out: 1}


def shifted_out(op: OpInfo, sample: SampleInput) -> None:
    """Calls with an out= that shares all but one element with the input."""
    first, second = shifted(sample.input, sample.input.device.type)
    op(first, *sample.args, **sample.kwargs, out=second)


def applies(form: Callable, op: OpInfo, sample: SampleInput) -> bool:
    if form is expanded_in_place:
        return op.inplace_variant is not None and sample.input.dim() > 0 and sample.input.size(0) > 1
    if not op.supports_out:
        return False
    result = op(sample.input, *sample.args, **sample.kwargs)
    if form in SEVERAL_OUTS:
        return (
            isinstance(result, tuple)
            and all(isinstance(each, torch.Tensor) for each in result)
            and result[SEVERAL_OUTS[form]].numel() > 1
        )
    if not isinstance(result, torch.Tensor) or result.numel() < 2:
        return False
    return form is expanded_out or (result.shape == sample.input.shape and result.dtype == sample.input.dtype)


@pytest.fixture(scope="module")
def samples(request) -> list[tuple[OpInfo, SampleInput]]:
    ops = sampled(OPS, SAMPLE_STEP, request.config.getoption("--full"))
    found = [(op, sample_of(op)) for op in ops]
    return [(op, sample) for op, sample in found if sample is not None]


@pytest.mark.parametrize("form", [expanded_in_place, expanded_out, *SEVERAL_OUTS, shifted_out])
def test_overlapping_memory_is_refused_if_the_cpu_refuses_it(musa, samples, form):
    counts: Counter[str] = Counter()
    refused = []
    for op, sample in samples:
        try:
            if not applies(form, op, on("cpu", sample)):
                continue
            expected = refusal(functools.partial(form, op, on("cpu", sample)))
        except RuntimeError:
            counts["no such call on the CPU"] += 1
            continue
        counts["refused on the CPU" if expected else "accepted on the CPU"] += 1
        if expected:
            refused.append((op, sample))
    print(f"\n{form.__name__}: {dict(counts)}")
    # Few operators have several outputs, so the sampled run reaches four or five of them.
    assert counts["refused on the CPU"] > (3 if form in SEVERAL_OUTS else 5)

    accepted = []
    for name in POLICIES:
        with policy(name):
            for op, sample in refused:
                try:
                    said = refusal(functools.partial(form, op, on("musa", sample)))
                    if said is None:
                        accepted.append(f"{name}: {op.formatted_name}")
                except RuntimeError as error:
                    accepted.append(f"{name}: {op.formatted_name}: {str(error)[:120]}")
    assert not accepted, f"{len(accepted)}: " + "\n".join(accepted)


@pytest.mark.parametrize(
    "function",
    [
        *(functools.partial(scan, dim=0) for scan in (torch.cumsum, torch.cumprod, torch.logcumsumexp)),
        lambda x, out: torch.addmm(x.view(2, 4), x.new_ones(2, 3), x.new_ones(3, 4), out=out.view(2, 4)),
        lambda x, out: torch.addmv(x, x.new_ones(8, 3), x.new_ones(3), out=out),
        lambda x, out: torch.baddbmm(
            x.view(2, 2, 2), x.new_ones(2, 2, 3), x.new_ones(2, 3, 2), out=out.view(2, 2, 2)
        ),
    ],
    ids=["cumsum", "cumprod", "logcumsumexp", "addmm", "addmv", "baddbmm"],
)
@pytest.mark.parametrize("name", POLICIES)
def test_results_shifted_against_their_operand_are_refused(musa, function, name):
    first, second = shifted(torch.arange(8.0), "musa")
    before = first.clone()
    with policy(name), pytest.raises(RuntimeError, match="single memory location"):
        function(first, out=second)
    assert first.equal(before)


@pytest.mark.parametrize("name", POLICIES)
def test_isin_refuses_a_result_in_one_element(musa, name):
    elements, among = torch.arange(6, device="musa"), torch.arange(3, device="musa")
    out = torch.zeros(1, dtype=torch.bool, device="musa").expand(6)
    with policy(name), pytest.raises(RuntimeError, match="single memory location"):
        torch.isin(elements, among, out=out)


@pytest.mark.parametrize("shape", [(8,), (4, 8)])
@pytest.mark.parametrize("name", POLICIES)
def test_copies_between_overlapping_slices_are_refused(musa, shape, name):
    x = torch.arange(float(torch.Size(shape).numel()), device="musa").reshape(shape)
    before = x.clone()
    with policy(name):
        for target, source in (
            (x[..., 1:], x[..., :-1]),
            (x.view(-1)[1:], x.view(-1)[:-1]),
            (x.view(-1)[:-2], x.view(-1)[2:]),
        ):
            if target.is_contiguous():  # otherwise the overlap is too hard to detect, on the CPU too
                with pytest.raises(RuntimeError, match="single memory location"):
                    target.copy_(source)
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            x.view(-1)[:1].expand(4).copy_(torch.ones(4, device="musa"))
    assert x.equal(before)


def test_copying_a_view_onto_itself_does_nothing(musa):
    x = torch.arange(6.0, device="musa")
    assert x[1:3].copy_(x[1:3]).tolist() == [1, 2]
    assert x[:1].expand(3).copy_(x[:1].expand(3)).tolist() == [0, 0, 0]
    assert x.view(2, 3).copy_(x.view(2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_disjoint_and_interleaved_slices_are_copied(musa):
    x = torch.arange(8.0, device="musa")
    x[4:].copy_(x[:4])
    assert x.tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    x[1::2].copy_(x[::2])
    assert x.tolist() == [0, 0, 2, 2, 0, 0, 2, 2]
