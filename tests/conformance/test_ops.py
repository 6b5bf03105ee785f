# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""PyTorch's operator database: every operator does on the device what it does on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.conformance import operators, variants
from tests.conformance.catalogue import suite
from tests.conformance.comparison import Mismatch, outcome_of, require_same_outcome
from tests.conformance.transfer import tensors_in, to_device


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


@suite("op", "forward")
def test_forward_equals_cpu(case: operators.Case, device: str, full: bool, count: Callable) -> None:
    values = case.name not in operators.UNINITIALISED
    count(_each(case.samples(full), lambda sample: variants.forward(case.op, sample, device, values=values)))


@suite("op", "gradient")
def test_gradient_equals_cpu(case: operators.Case, device: str, full: bool, count: Callable) -> None:
    samples = case.samples(full, requires_grad=True)
    count(_each(samples, lambda sample: variants.gradient(case.op, sample, device)))


@suite("op", "out")
def test_out_argument_equals_cpu(case: operators.Case, device: str, full: bool, count: Callable) -> None:
    count(_each(case.samples(full), lambda sample: variants.out_argument(case.op, sample, device)))


@suite("op", "in-place")
def test_in_place_form_equals_cpu(case: operators.Case, device: str, full: bool, count: Callable) -> None:
    samples = (sample for sample in case.samples(full) if not sample.broadcasts_input)
    count(_each(samples, lambda sample: variants.in_place(case.op, sample, device)))


@suite("op", "non-contiguous")
def test_noncontiguous_arguments_equal_cpu(
    case: operators.Case, device: str, full: bool, count: Callable
) -> None:
    count(_each(case.samples(full), lambda sample: variants.noncontiguous(case.op, sample, device)))


@suite("op", "expanded")
def test_expanded_arguments_equal_cpu(case: operators.Case, device: str, full: bool, count: Callable) -> None:
    count(_each(case.samples(full), lambda sample: variants.expanded(case.op, sample, device)))


@suite("op", "zero-size")
def test_zero_size_arguments_equal_cpu(
    case: operators.Case, device: str, full: bool, count: Callable
) -> None:
    values = case.name not in operators.UNDEFINED_WHEN_EMPTY
    count(
        _each(case.samples(full), lambda sample: variants.zero_size(case.op, sample, device, values=values))
    )


@suite("op", "sparse")
def test_sparse_arguments_equal_cpu(case: operators.Case, device: str, full: bool, count: Callable) -> None:
    count(_each(case.samples(full), lambda sample: variants.forward(case.op, sample, device, may_raise=True)))


@suite("op", "error")
def test_refused_arguments_raise_the_same_class(case: operators.Case, device: str, count: Callable) -> None:
    def judge(sample: Any) -> None:
        arguments = (sample.input, sample.args, sample.kwargs)
        on_cpu, on_device = to_device("cpu", *arguments), to_device(device, *arguments)
        expected = outcome_of(lambda: case.op(on_cpu[0], *on_cpu[1], **on_cpu[2]))
        actual = outcome_of(lambda: case.op(on_device[0], *on_device[1], **on_device[2]))
        require_same_outcome(expected, actual, device, values=False)

    count(_each((error.sample_input for error in operators.error_inputs(case.op)), judge))


@suite("op", "foreach")
def test_operators_on_lists_equal_cpu(case: operators.Case, device: str, full: bool, count: Callable) -> None:
    count(_each(case.samples(full), lambda sample: variants.forward(case.op, sample, device, may_raise=True)))


@suite("op", "foreach in-place")
def test_operators_on_lists_in_place_equal_cpu(
    case: operators.Case, device: str, full: bool, count: Callable
) -> None:
    count(_each(case.samples(full), lambda sample: variants.in_place(case.op, sample, device)))
