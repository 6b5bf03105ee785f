# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Functions that Inductor compiles for musa give the results and gradients of eager mode on the CPU."""

from __future__ import annotations

import pytest
import torch

from tests.musa_compile.cases import CASES, Case
from tests.musa_compile.comparison import assert_same

pytestmark = pytest.mark.once

# One of each kind of code: a reduction with a conversion, a norm, an index, a product with an epilogue, a
# convolution in channels_last, symbolic sizes.
SAMPLED = {"float16", "layer_norm", "index_put", "linear_gelu", "conv_channels_last", "dynamic_views"}


def parameters() -> list:
    return [
        pytest.param(case, id=case.name, marks=() if case.name in SAMPLED else pytest.mark.full)
        for case in CASES
    ]


def as_list(result) -> list[torch.Tensor]:
    return list(result) if isinstance(result, tuple) else [result]


def run(case: Case, function, inputs: list[torch.Tensor], device: str) -> tuple[list, list, list]:
    """The results of a function, the inputs after it, and the gradients of the sum of the results."""
    leaves = [
        value.clone().to(device).requires_grad_(case.gradients and value.is_floating_point())
        for value in inputs
    ]
    results = as_list(function(*leaves))
    if case.gradients:
        sum(result.float().sum() for result in results if result.requires_grad).backward()
    return results, leaves, [leaf.grad for leaf in leaves]


def test_the_sample_is_of_the_cases():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names) and set(names) > SAMPLED


@pytest.mark.inductor
@pytest.mark.parametrize("case", parameters())
def test_compiled_as_eager_on_the_cpu(musa, compiler, case):
    inputs = list(case.inputs())
    expected, inputs_after, gradients = run(case, case.function, inputs, "cpu")
    compiled = torch.compile(case.function, fullgraph=True, dynamic=case.dynamic)
    actual, own_inputs_after, own_gradients = run(case, compiled, inputs, "musa")
    assert len(actual) == len(expected)
    for result, wanted in zip(actual, expected):
        assert result.device == torch.device("musa", 0)
        assert_same(result, wanted, case.tolerance)
    if case.writes_inputs:
        for value, wanted in zip(own_inputs_after, inputs_after):
            assert_same(value, wanted, case.tolerance)
    assert [gradient is None for gradient in own_gradients] == [gradient is None for gradient in gradients]
    for gradient, wanted in zip(own_gradients, gradients):
        if wanted is not None:
            # A gradient adds up over all results.
            assert_same(gradient, wanted, 10 * case.tolerance)


@pytest.mark.full
def test_the_case_that_fails_fails_on_the_cpu_too(compiler):
    [case] = [case for case in CASES if case.name == "attention_of_products"]
    with pytest.raises(IndexError):
        run(case, torch.compile(case.function, fullgraph=True), list(case.inputs()), "cpu")
