# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The runtime's fixtures and leak check, and who serves a call."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.musa_runtime.conftest import *  # noqa: F403 - fixtures and hooks of this suite too


@pytest.fixture
def calls_of(musa) -> Callable[[str], int]:
    """How often muDNN has served an operator, by its full name."""

    def calls(op: str) -> int:
        candidates = musa.ops.explain(op)["candidates"]
        return sum(row["calls"] for row in candidates if row["provider"] == "mudnn")

    return calls


@pytest.fixture
def served_by_mudnn(calls_of) -> Callable:
    """Run f() and say whether muDNN served the operator in it; gives (result, bool)."""

    def run(op: str, f: Callable) -> tuple:
        before = calls_of(op)
        result = f()
        return result, calls_of(op) > before

    return run
