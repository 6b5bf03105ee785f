# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""PyTorch's operator database: every operator behaves on the device as on the CPU."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch

from tests.conformance import host_copies, operators, variants
from tests.conformance.catalogue import suite
from tests.conformance.comparison import Mismatch, outcome_of, require_same_outcome
from tests.conformance.transfer import tensors_in, to_device
from tests.harness.device import computes_float64, host_can_address_device_memory


def _copies() -> dict[str, int]:
    return {row["op"]: row["count"] for row in torch.musa.ops.fallback_report()}


@pytest.fixture(autouse=True)
def no_other_operator_is_copied(device: str) -> Iterator[None]:
    """In the default order, on a device that computes in every dtype, only listed operators are copied."""
    packs = device == "musa" and "TORCH_MUSA_OPS" not in os.environ
    if not packs or host_can_address_device_memory() or not computes_float64():
        yield
        return
    before = _copies()
    yield
    copied = {op for op, count in _copies().items() if count > before.get(op, 0)}
    assert copied <= set(host_copies.listed())


def _description(sample: Any) -> str:
    arguments = (sample.input, sample.args, sample.kwargs)
    tensors = [f"{tuple(tensor.shape)} {tensor.dtype} {tensor.layout}" for tensor in tensors_in(arguments)]
    others = [value for value in (*sample.args, *sample.kwargs.items()) if not tensors_in([value])]
    return f"tensors: {'; '.join(tensors)}\nother arguments: {others}"[:1500]


def _each(samples: Iterator[Any], judge: Callable[[Any], None]) -> int:
    """Judge every sample; a failure names the sample. Returns how many there were."""
    done = 0
    for sample in samples:
        try:
            judge(sample)
        except (Mismatch, variants.ReferenceFailed) as error:
            raise type(error)(f"sample {done}: {error}\n{_description(sample)}") from error
        done += 1
    return done


def _judge(variant: Callable, case: operators.Case, device: str, **settings: Any) -> Callable[[Any], None]:
    """`variant` of the case's operator as a function of a sample, with the tolerance of the case."""
    return partial(variant, case.op, device=device, **{"tolerance": case.tolerance, **settings})


@suite("op", "forward")
def test_forward_equals_cpu(case: operators.Case, device: str, full: bool, count: Callable) -> None:
    values = case.name not in operators.UNINITIALISED
    count(_each(case.samples(full), _judge(variants.forward, case, device, values=values)))


@suite("op", "gradient")
def test_gradient_equals_cpu(case: operators.Case, device: str, full: bool, count: Callable) -> None:
    samples = case.samples(full, requires_grad=True)
    count(_each(samples, _judge(variants.gradient, case, device, tolerance=case.tolerance_of_gradients)))


@suite("op", "out")
def test_out_argument_equals_cpu(case: operators.Case, device: str, full: bool, count: Callable) -> None:
    count(_each(case.samples(full), _judge(variants.out_argument, case, device)))


@suite("op", "in-place")
def test_in_place_form_equals_cpu(case: operators.Case, device: str, full: bool, count: Callable) -> None:
    samples = (sample for sample in case.samples(full) if not sample.broadcasts_input)
    count(_each(samples, _judge(variants.in_place, case, device)))


@suite("op", "non-contiguous")
def test_noncontiguous_arguments_equal_cpu(
    case: operators.Case, device: str, full: bool, count: Callable
) -> None:
    count(_each(case.samples(full), _judge(variants.noncontiguous, case, device)))


@suite("op", "expanded")
def test_expanded_arguments_equal_cpu(case: operators.Case, device: str, full: bool, count: Callable) -> None:
    samples = operators.expandable_samples(case, full, by_value=host_can_address_device_memory())
    count(_each(samples, _judge(variants.expanded, case, device)))


@suite("op", "zero-size")
def test_zero_size_arguments_equal_cpu(
    case: operators.Case, device: str, full: bool, count: Callable
) -> None:
    values = case.name not in operators.UNDEFINED_WHEN_EMPTY
    if case.name in operators.TRANSFORMS and operators.are_by_library(device):
        several = (sample for sample in case.samples(full) if sample.input.dim() > 1)
        count(_each(several, lambda sample: variants.zero_size_like_meta(case.op, sample, device)))
        return
    count(_each(case.samples(full), _judge(variants.zero_size, case, device, values=values)))


@suite("op", "sparse")
def test_sparse_arguments_equal_cpu(case: operators.Case, device: str, full: bool, count: Callable) -> None:
    count(_each(case.samples(full), _judge(variants.forward, case, device, may_raise=True)))


@suite("op", "error")
def test_refused_arguments_raise_the_same_class(case: operators.Case, device: str, count: Callable) -> None:
    def judge(sample: Any) -> None:
        arguments = (sample.input, sample.args, sample.kwargs)
        on_cpu, on_device = to_device("cpu", *arguments), to_device(device, *arguments)
        expected = outcome_of(lambda: case.op(on_cpu[0], *on_cpu[1], **on_cpu[2]))
        actual = outcome_of(lambda: case.op(on_device[0], *on_device[1], **on_device[2]))
        require_same_outcome(expected, actual, device, values=False)

    errors = operators.error_inputs(case.op, by_value=host_can_address_device_memory())
    count(_each((error.sample_input for error in errors), judge))


@suite("op", "foreach")
def test_operators_on_lists_equal_cpu(case: operators.Case, device: str, full: bool, count: Callable) -> None:
    count(_each(case.samples(full), _judge(variants.forward, case, device, may_raise=True)))


@suite("op", "foreach in-place")
def test_operators_on_lists_in_place_equal_cpu(
    case: operators.Case, device: str, full: bool, count: Callable
) -> None:
    count(_each(case.samples(full), _judge(variants.in_place, case, device)))
