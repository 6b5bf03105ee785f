# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The runtime suite's fixtures and leak check, and the provider of a call."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.musa_runtime.conftest import *  # noqa: F403 - fixtures and hooks of this suite too


@pytest.fixture
def calls_of(musa) -> Callable[[str], int]:
    """A function that returns the number of calls of an operator, by its full name, that muDNN handled."""

    def calls(op: str) -> int:
        candidates = musa.ops.explain(op)["candidates"]
        return sum(row["calls"] for row in candidates if row["provider"] == "mudnn")

    return calls


@pytest.fixture
def served_by_mudnn(calls_of) -> Callable:
    """A function that calls f() and returns its result and whether muDNN handled the operator in it."""

    def run(op: str, f: Callable) -> tuple:
        before = calls_of(op)
        result = f()
        return result, calls_of(op) > before

    return run
