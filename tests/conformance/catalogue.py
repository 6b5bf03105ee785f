# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Every suite of the conformance run, by database and variant. Expectations may name only their cases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import pytest

from . import modules, operators, optimizers


class ConformanceCase(Protocol):
    """The case of one test. `name` and `kind` identify it in the expectations and in the results; a case that
    is not `sampled` runs only in the complete run (--full).
    """

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def sampled(self) -> bool: ...


SUITES: dict[tuple[str, str], Callable[[], Sequence[ConformanceCase]]] = {
    ("op", "forward"): operators.forward_cases,
    ("op", "gradient"): operators.gradient_cases,
    ("op", "out"): operators.out_cases,
    ("op", "in-place"): operators.in_place_cases,
    ("op", "non-contiguous"): operators.float_cases,
    ("op", "expanded"): operators.expandable_cases,
    ("op", "zero-size"): operators.float_cases,
    ("op", "sparse"): operators.sparse_cases,
    ("op", "error"): operators.error_cases,
    ("op", "foreach"): operators.foreach_cases,
    ("op", "foreach in-place"): operators.foreach_in_place_cases,
    ("op", "random"): operators.random_cases,
    ("module", "forward and backward"): modules.cases,
    ("module", "state"): modules.cases,
    ("optimizer", "steps"): optimizers.cases,
}

# CUDA's dtypes in place of the CPU's (cuda_dtypes.py), with a record of its own.
DTYPE_SUITE = ("dtype", "forward and gradient")


def suite(database: str, variant: str) -> Callable:
    """Decorate a test that takes `case`: one test per case of the suite."""
    cases = [
        pytest.param(case, id=str(case), marks=() if case.sampled else pytest.mark.full)
        for case in SUITES[database, variant]()
    ]

    def decorate(test: Callable) -> Callable:
        test = pytest.mark.parametrize("case", cases)(test)
        return pytest.mark.conformance(database, variant)(test)

    return decorate


def all_keys() -> set[tuple[str, str, str, str]]:
    """(database, name, variant, kind) of every conformance test that exists."""
    return {
        (database, case.name, variant, case.kind)
        for (database, variant), cases in SUITES.items()
        for case in cases()
    }
