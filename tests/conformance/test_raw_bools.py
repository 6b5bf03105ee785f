# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Every operator takes any byte except 0 as true, in masks and operands made by `.view(torch.bool)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.conformance import operators, raw_bools
from tests.conformance.comparison import Mismatch, outcome_of, require_same_outcome
from tests.conformance.orders import ORDERS, order
from tests.conformance.places import settled
from tests.conformance.tolerances import DEFAULT
from tests.conformance.transfer import to_device
from tests.conformance.variants import arguments_on

_EVERY = 3  # of the operators in float32, in the sampled run


def _cases(full: bool) -> list[operators.Case]:
    cases = [case for case in operators.forward_cases() if case.name not in operators.UNINITIALISED]
    floats = [case for case in cases if case.dtype is torch.float32]
    return [case for case in cases if case.dtype is torch.bool] + (floats if full else floats[::_EVERY])


def _compare(call: Callable, op: Any, here: tuple, there: tuple, device: str, tolerance: Any) -> None:
    expected = outcome_of(lambda: raw_bools.with_zeros_and_ones(call(*here)))
    with torch.device(device):
        actual = outcome_of(lambda: raw_bools.with_zeros_and_ones(call(*there)))
    if expected.error is None and actual.error is None:
        actual.value = settled(op, here, expected.value, actual.value)
    require_same_outcome(expected, actual, device, tolerance=tolerance)


def _forms(op: Any) -> list[Callable]:
    in_place = getattr(op, "get_inplace", lambda: None)()
    forms = [op] if in_place is None else [op, in_place]
    return [lambda first, args, kwargs, form=form: form(first, *args, **kwargs) for form in forms]


def judge(case: operators.Case, device: str, full: bool) -> tuple[int, list[str]]:
    """The number of calls that were compared with the CPU's for bytes 0 and 1, and the differences."""
    judged, wrong = 0, []
    for sample in case.samples(full):
        arguments = (sample.input, sample.args, sample.kwargs)
        if not raw_bools.has_bools(*arguments):
            continue
        for number, form in enumerate(_forms(case.op)):
            odd = raw_bools.with_any_bytes(*arguments)
            sample.input, sample.args, sample.kwargs = odd
            there = arguments_on(case.op, sample, device)
            here = to_device("cpu", *arguments)
            judged += 1
            try:
                _compare(form, case.op, here, there, device, case.tolerance)
            except Mismatch as mismatch:
                name = f"{case}, in place" if number else str(case)
                wrong.append(f"{name}: {str(mismatch)[:200]}")
            sample.input, sample.args, sample.kwargs = arguments
    return judged, wrong


@pytest.mark.parametrize("name", ORDERS)
def test_any_byte_except_0_is_true(name: str, device: str, full: bool) -> None:
    judged, wrong = 0, []
    with order(name):
        for case in _cases(full):
            calls, differences = judge(case, device, full)
            judged += calls
            wrong += differences
    assert not wrong, f"{len(wrong)} of {judged} calls:\n" + "\n".join(wrong)
    assert judged > 200


def test_a_kernel_that_adds_the_bytes_is_reported(device: str) -> None:
    def op(x: torch.Tensor) -> torch.Tensor:
        return x.view(torch.uint8).sum()

    plain = torch.tensor([True, False, True])
    (odd,) = raw_bools.with_any_bytes(plain)
    assert odd.view(torch.uint8).gt(1).any() and torch.equal(raw_bools.with_zeros_and_ones(odd), plain)
    there = to_device(device, odd, (), {})
    with pytest.raises(Mismatch):
        _compare(_forms(op)[0], op, (plain, (), {}), there, device, DEFAULT)
