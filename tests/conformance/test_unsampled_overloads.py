# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Every overload that a pack serves is compared with the CPU: by torch's operator database, by a sample of
our own, or by a test that sampled_elsewhere.toml names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.conformance import own_samples, reach
from tests.conformance.comparison import Mismatch, Outcome, outcome_of, require_same, require_same_outcome
from tests.conformance.decompositions import compare_invariants
from tests.conformance.transfer import tensors_in, to_device
from tests.harness.device import DEVICE, host_can_address_device_memory

if sys.version_info >= (3, 11):
    import tomllib
else:  # pytest itself depends on tomli there
    import tomli as tomllib

_ELSEWHERE = Path(__file__).with_name("sampled_elsewhere.toml")
_TESTS = Path(__file__).parents[1]


@cache
def _elsewhere() -> list[dict[str, Any]]:
    return tomllib.loads(_ELSEWHERE.read_text(encoding="utf-8"))["elsewhere"]


@cache
def _recorded() -> dict[str, list[tuple[tuple, dict]]]:
    return own_samples.recorded_calls()


def _samples(name: str) -> list[tuple[str, list, dict]]:
    """Calls of `name` without its out= arguments, and the related overload that they were found for."""
    for other in own_samples.related(name):
        calls = [make() for make in own_samples.OWN.get(other, [])] or _recorded().get(other, [])
        if calls:
            return [(other, list(args), dict(kwargs)) for args, kwargs in calls]
    return []


def unsampled() -> list[str]:
    """The aten overloads that packs serve and that neither the database nor a test elsewhere calls."""
    elsewhere = {name for entry in _elsewhere() for name in entry["overloads"]}
    left = reach.served() - reach.reached() - elsewhere
    return sorted(name.removeprefix("aten::") for name in left)


def _offered(provider: str) -> list[str]:
    """The unsampled overloads that a provider has a kernel for; torch's own kernels are not compared here."""
    offered = []
    for name in unsampled():
        candidates = torch.musa.ops.explain(f"aten::{name}")["candidates"]
        on_cpu = provider != "ported" and name in own_samples.CPU_DOES_NOT_RESIZE
        if any(each["provider"] == provider for each in candidates) and not on_cpu:
            offered.append(name)
    return offered


def _judge(name: str, other: str, args: list, kwargs: dict, device: str) -> None:
    form = own_samples.overload(name)
    reference = own_samples.REFERENCES.get(other)
    first = other in own_samples.FIRST_RESULT
    values = name not in own_samples.RANDOM and other not in own_samples.RANDOM
    here, there = to_device("cpu", args, kwargs), to_device(device, args, kwargs)
    outs = own_samples.outs_of(name)
    if reference is not None:
        expected = outcome_of(lambda: reference(*here[0], **here[1]))
    elif outs:
        # The functional form gives the dtypes; out= is compared with it.
        expected = outcome_of(lambda: own_samples.overload(other)(*here[0], **here[1]))
    else:
        expected = outcome_of(lambda: form(*here[0], **here[1]))
    assert expected.error is None, f"{name}: the CPU refused the sample: {expected.error!r}"
    if outs:
        results = tensors_in([expected.value])
        given = dict(zip(outs, (result.new_empty(0, device=device) for result in results), strict=True))
        actual = outcome_of(lambda: form(*there[0], **there[1], **given))
        if actual.error is not None:
            raise actual.error
        written = Outcome(list(given.values()))
        expected = Outcome(results)
        compare_invariants(name, expected, written, device)
        require_same(expected.value, written.value, device, values=values, path="out")
    else:
        with torch.device(device):
            actual = outcome_of(lambda: form(*there[0], **there[1]))
        if first and actual.error is None:
            expected.value, actual.value = expected.value[0], actual.value[0]
        compare_invariants(name, expected, actual, device)
        require_same_outcome(expected, actual, device, values=values)
        # In-place forms and statistics.
        require_same(tensors_in(here), tensors_in(there), device, values=values, path="arguments")


@pytest.mark.parametrize("provider", ["mudnn", "ported"])
def test_overloads_that_the_database_does_not_call_equal_the_cpu(provider: str, device: str) -> None:
    last = "host" if host_can_address_device_memory() else "host-copy"
    wrong, judged = [], 0
    with torch.musa.ops.prefer("*", provider, "runtime", last):
        for name in _offered(provider):
            for other, args, kwargs in _samples(name):
                judged += 1
                try:
                    _judge(name, other, args, kwargs, device)
                except (Mismatch, RuntimeError, NotImplementedError) as error:
                    wrong.append(f"{name}, as {other}: {type(error).__name__}: {str(error)[:250]}")
    assert not wrong, "\n".join(wrong)
    assert judged > 20


def test_every_served_overload_has_a_sample(device: str) -> None:
    assert DEVICE == "musa"
    missing = [name for name in unsampled() if "::" in name or not _samples(name)]
    assert not missing, (
        f"Packs serve overloads that nothing compares with the CPU: {', '.join(missing)}.\n"
        "Fix: give each arguments in tests/conformance/own_samples.py, or name the test that compares it in "
        "tests/conformance/sampled_elsewhere.toml."
    )


def test_a_new_overload_without_a_sample_is_refused(
    device: str, monkeypatch: pytest.MonkeyPatch, without: Callable = test_every_served_overload_has_a_sample
) -> None:
    served = reach.served()
    monkeypatch.setattr(reach, "served", lambda: served | {"aten::_cudnn_rnn_flatten_weight"})
    with pytest.raises(AssertionError, match="_cudnn_rnn_flatten_weight"):
        without(device)


@pytest.mark.once
def test_tests_elsewhere_exist_and_name_their_operators(device: str) -> None:
    served = reach.served()
    for entry in _elsewhere():
        text = (_TESTS / entry["test"]).read_text(encoding="utf-8")
        assert entry["mentions"] in text, f"{entry['test']} does not mention {entry['mentions']}"
        gone = sorted(set(entry["overloads"]) - served)
        assert not gone, f"no pack serves {', '.join(gone)}: remove them from {_ELSEWHERE.name}"


@pytest.mark.parametrize(
    ("element", "tests"),
    [(5, [1, 5]), (2, [1, 5]), (5, []), (5.5, [5.5])],
    ids=["in", "not in", "empty", "float"],
)
def test_a_number_is_found_among_the_elements_of_a_tensor(element, tests, device: str) -> None:
    expected = torch.isin(element, torch.tensor(tests))
    last = "host" if host_can_address_device_memory() else "host-copy"
    for provider in ("mudnn", "ported"):
        with torch.musa.ops.prefer("*", provider, last):
            found = torch.isin(element, torch.tensor(tests, device=device))
            assert found.shape == () and torch.equal(found.cpu(), expected)
            out = torch.zeros(3, dtype=torch.bool, device=device)[:0]
            torch.isin(element, torch.tensor(tests, device=device), out=out)
            assert torch.equal(out.cpu(), expected)
