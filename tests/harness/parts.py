# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Shares of the tests, ``--part=I/N``, that the legs of a run take, and samples of sweeps."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pytest


def chosen(config: pytest.Config) -> tuple[int, int]:
    """The two numbers of --part.

    Raises:
        pytest.UsageError: unless the option is two numbers I/N with I from 1 to N.
    """
    text = config.getoption("--part")
    index, _, count = text.partition("/")
    if not (index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)):
        raise pytest.UsageError(f"--part={text}: two numbers I/N are expected, I from 1 to N, such as 1/2")
    return int(index), int(count)


def sample(values: Iterable[Any], step: int, always: Collection[Any] = ()) -> list[Any]:
    """Values for parametrize: every `step`-th one and those of `always`, and the others only with --full."""

    def full_only(value: Any) -> Any:
        return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.full)

    return [value if n % step == 0 or value in always else full_only(value) for n, value in enumerate(values)]


def left_out(items: Iterable[pytest.Item], index: int, count: int) -> set[pytest.Item]:
    """The tests that part `index` of `count` leaves to the other parts: it takes every `count`-th of a file.

    Fault sweeps stay whole, because each divides its calls among the settings itself (sweeps.py). So does
    conformance, which divides its cases (conformance/conftest.py).
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        if not item.path.name.startswith("test_fault_sweep") and "conformance" not in item.path.parts:
            files.setdefault(item.path, []).append(item)
    return {item for tests in files.values() for n, item in enumerate(tests) if n % count != index - 1}
