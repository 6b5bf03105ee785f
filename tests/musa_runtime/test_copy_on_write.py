# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Operators that only read lazy clones (`torch._lazy_clone`) keep them lazy; none writes to shared memory.

torch's operator database lists the inputs that torch's kernels materialize; `MATERIALIZED` lists ours.
"""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._pytree import tree_leaves

from tests.conformance.operators import OPS, RANDOM, UNINITIALISED
from tests.harness.policies import POLICIES, policy, sampled

pytestmark = pytest.mark.once

SAMPLE_STEP = 10
SAMPLES_PER_OPERATOR = 2  # with --full

# Operators whose kernels get a mutable pointer to an input that they only read, by policy.
MATERIALIZED: dict[str, dict[str, str]] = {name: {} for name in POLICIES}


def lazy_clones(sample: SampleInput) -> tuple[SampleInput, dict[Any, list]]:
    """Returns the sample with lazy clones of its tensors, and the (original, clone) pairs by position."""
    clones: dict[Any, list[tuple[torch.Tensor, torch.Tensor]]] = {}

    def clone(place: Any, value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.layout == torch.strided and value.numel() > 0:
            lazy = torch._lazy_clone(value)
            clones.setdefault(place, []).append((value, lazy))
            return lazy
        if isinstance(value, (list, tuple)) and any(isinstance(each, torch.Tensor) for each in value):
            return type(value)(clone(place, each) for each in value)
        return value

    made = SampleInput(
        clone(0, sample.input),
        args=tuple(clone(i + 1, value) for i, value in enumerate(sample.args)),
        kwargs={name: clone(name, value) for name, value in sample.kwargs.items()},
    )
    return made, clones


def is_lazy(tensor: torch.Tensor) -> bool:
    return torch._C._is_cow_tensor(tensor)


def materialized_by(op: OpInfo, sample: SampleInput) -> list[str]:
    """Returns the inputs that are no longer lazy; raises AssertionError if a result or original is wrong."""
    expected = op(sample.input, *sample.args, **sample.kwargs)
    before = [leaf.clone() for leaf in tensors_of(sample)]
    made, clones = lazy_clones(sample)
    results = op(made.input, *made.args, **made.kwargs)
    allowed = op.allow_cow_input_materialize_forward or []
    materialized = [
        str(place)
        for place, pairs in clones.items()
        if place not in allowed and not all(is_lazy(lazy) for _, lazy in pairs)
    ]
    if op.name not in RANDOM and op.name not in UNINITIALISED:
        torch.testing.assert_close(results, expected, equal_nan=True)
    torch.testing.assert_close(tensors_of(sample), before, equal_nan=True, rtol=0, atol=0)
    return materialized


def is_tensor(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor)


def tensors_of(sample: SampleInput) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves((sample.input, sample.args, sample.kwargs)) if is_tensor(leaf)]


@pytest.mark.parametrize("name", POLICIES)
def test_inputs_that_are_only_read_stay_lazy(musa, full, name):
    counts: Counter[str] = Counter()
    lost: dict[str, list[str]] = {}
    with policy(name), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for op in sampled(OPS, SAMPLE_STEP, full):
            floats = torch.float32 in op.supported_dtypes("cpu")
            if not op.supports_cow_input_no_materialize_forward or not floats:
                counts["excused by torch, or not of float32"] += 1
                continue
            samples = op.sample_inputs("musa", torch.float32, requires_grad=False)
            for sample in itertools.islice(samples, SAMPLES_PER_OPERATOR if full else 1):
                torch.manual_seed(0)
                places = materialized_by(op, sample)
                counts["samples"] += 1
                if places:
                    lost.setdefault(op.formatted_name, []).extend(places)
    excused = MATERIALIZED[name]
    counts["materialized with a reason"] = len([op for op in lost if op in excused])
    print(f"\n{name}: {dict(counts)}")
    assert counts["samples"] > 40
    unknown = {op: sorted(set(places)) for op, places in lost.items() if op not in excused}
    assert not unknown, f"{len(unknown)}: " + "\n".join(f"{op}: {places}" for op, places in unknown.items())
    if full:
        stale = sorted(set(excused) - set(lost))
        assert not stale, f"these stay lazy now; remove them from MATERIALIZED: {stale}"


@pytest.mark.parametrize("name", POLICIES)
def test_a_lazy_clone_gets_its_own_memory_when_it_is_written(musa, full, name):
    counts: Counter[str] = Counter()
    problems = []
    with policy(name), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for op in sampled([op for op in OPS if op.inplace_variant is not None], SAMPLE_STEP, full):
            if torch.float32 not in op.supported_dtypes("cpu"):
                continue
            sample = next(iter(op.sample_inputs("musa", torch.float32, requires_grad=False)), None)
            if sample is None or not is_tensor(sample.input) or sample.input.numel() == 0:
                continue
            original = sample.input.clone()
            clone = torch._lazy_clone(original)
            try:
                op.inplace_variant(clone, *sample.args, **sample.kwargs)
            except RuntimeError:
                counts["cannot hold the result"] += 1
                continue
            counts["written"] += 1
            if not torch.equal(original.nan_to_num(), sample.input.nan_to_num()):
                problems.append(op.formatted_name)
    print(f"\n{name}: {dict(counts)}")
    assert counts["written"] > 10
    assert not problems, f"the original was written: {problems}"


@pytest.mark.parametrize("name", POLICIES)
def test_a_sum_with_its_own_lazy_clone_keeps_it_lazy(musa, name):
    t = torch.arange(4.0, device="musa")
    lazy = t._lazy_clone()
    with policy(name):
        assert (t + lazy).tolist() == [0, 2, 4, 6]
        assert is_lazy(lazy) and is_lazy(t)
        torch.add(t, 1, out=lazy)
    assert t.tolist() == [0, 1, 2, 3] and lazy.tolist() == [1, 2, 3, 4]
    assert not is_lazy(lazy)


@pytest.mark.parametrize("name", POLICIES)
def test_running_statistics_that_are_lazy_clones_are_not_shared(musa, name):
    mean, var = torch.zeros(2, device="musa"), torch.ones(2, device="musa")
    lazy_mean, lazy_var = mean._lazy_clone(), var._lazy_clone()
    with policy(name):
        torch.native_batch_norm(
            torch.randn(8, 2, device="musa") + 3, None, None, lazy_mean, lazy_var, True, 0.5, 1e-5
        )
    assert mean.tolist() == [0, 0] and var.tolist() == [1, 1]
    assert lazy_mean.min().item() > 0.5
