# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A tensor argument that is too short raises an error or gives the CPU's result. No kernel reads or writes
past its end.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.conformance import composite_calls, short_arguments

# Arguments that only the CPU reads or checks, and calls that fail on the CPU in its own way.
_ANOTHER_RESULT = re.compile(
    "|".join(
        [
            r"_embedding_bag_dense_backward: args\.3 .*: differs",  # sizes of bags, for maxima
            r"log_sigmoid_backward: args\.[12] .*: (differs|accepted)",  # the buffer, and self as its shape
            r"log_sigmoid_forward: .*\.shape: ",  # the buffer is empty
            r"binary_cross_entropy_backward: args\.[12] .*\.shape: ",  # operands are broadcast
            r"native_batch_norm_backward: args\.[34] .*: accepted",  # running statistics in training
            # torch's CPU kernel does not look at the number of weights, and nothing else serves such a call.
            r"_native_batch_norm_legit\.no_stats: args\.[12] .*: fault: reads outside",
            r"gelu_backward: args\.0 0-d .*: accepted: .* primitive",  # oneDNN does not broadcast
            # The CPU writes to another plane if an index is past the end of its own.
            r"adaptive_max_pool[23]d_backward: args\.1 .*: differs",
        ]
    )
)


def _check(calls: list, providers: tuple[str, ...], folder: Path) -> Counter:
    report = short_arguments.run(calls, providers, folder)
    faults = [fault for fault in report.faults if not _ANOTHER_RESULT.match(fault)]
    assert not faults, "\n".join([str(dict(report.outcomes)), *faults])
    return report.outcomes


@pytest.mark.once
def test_operators_of_the_runtime(device: str, tmp_path: Path) -> None:
    calls = composite_calls.offered_by("runtime", composite_calls.own())
    assert len(calls) > 20
    outcomes = _check(calls, ("runtime", "host"), tmp_path)
    assert outcomes["raised"] > 200, outcomes


@pytest.mark.once
@pytest.mark.timeout(3600)  # with --full, thousands of cases, and a new process after each crash
@pytest.mark.parametrize("providers", [("mudnn", "ported"), ("ported",)], ids=lambda names: names[0])
def test_operators_of_packs(providers: tuple[str, ...], device: str, full: bool, tmp_path: Path) -> None:
    recorded = composite_calls.recorded(device) if full else []
    calls = composite_calls.offered_by(providers[0], [*recorded, *composite_calls.own()])
    outcomes = _check(calls, (*providers, "runtime", "host"), tmp_path)
    assert outcomes["raised"] > len(calls), outcomes


@pytest.mark.once
def test_faults_are_found(device: str, tmp_path: Path) -> None:
    report = short_arguments.run(short_arguments.faulty_calls(), ("host",), tmp_path)
    found = {}
    for fault in report.faults:
        name = re.match(rf"{short_arguments.FAULTY}::(\w+)", fault)[1]
        found.setdefault(name, fault)
    assert set(found) == {"reads", "writes", "crashes", "differs", "accepts"}
    assert "reads outside" in found["reads"]
    assert "writes outside" in found["writes"]
    assert "exit status" in found["crashes"]
    assert "differs" in found["differs"]
    assert "accepted" in found["accepts"]
