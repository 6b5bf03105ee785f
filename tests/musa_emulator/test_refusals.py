# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The runtime refuses the same calls as a CUDA driver: every row of refusals.py, in every execution mode."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache

import pytest

from tests.musa_emulator import refusal_arguments, refusal_rows, refusals, sdk, test_exports

pytestmark = pytest.mark.once

assert refusal_rows.ROWS is refusal_arguments.ROWS  # importing them fills the table

MODES = ("inline", "async", "lazy")
LIBRARIES = [str(sdk.HOME / "lib" / name) for name in ("libmusart.so", "libmusa.so")]


@cache
def results(mode: str) -> dict[str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.musa_emulator.refusals", *LIBRARIES],
        env=sdk.clean_environment(MUSA_EMULATOR_MODE=mode, MUSA_EMULATOR_DEVICES="2"),
        capture_output=True,
        text=True,
        timeout=120,
        cwd=sdk.ROOT,
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stderr[-4000:]}"
    return json.loads(done.stdout)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("call", refusals.CALLS)
def test_a_capture_refuses_the_call_according_to_its_mode_and_the_threads_mode(call: str, mode: str) -> None:
    rows = {name: row for name, row in refusals.calls_in_cases() if name.split(" ")[0] == call}
    assert len(rows) == len(refusals.CASES)
    expected = {name: list(row.expected) for name, row in rows.items()}
    assert {name: results(mode)[name] for name in rows} == expected


def test_the_table_has_every_potentially_unsafe_function_of_the_headers() -> None:
    declared = test_exports.declared(
        [*test_exports.HEADERS["libmusart.so"], *test_exports.HEADERS["libmusa.so"]]
    )
    called = {name.split("_")[0] for name in refusals.CALLS}
    unsafe = {name for name in declared if refusals.POTENTIALLY_UNSAFE.fullmatch(name)}
    assert {name for name in unsafe if not called & {name, name.removeprefix("musa")}} == set()
    assert {"musaHostAlloc", "musaFreeHost", "muMemAlloc", "muEventQuery"} <= unsafe


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", refusals.ROWS)
def test_the_runtime_answers_as_the_row_says(name: str, mode: str) -> None:
    assert results(mode)[name] == list(refusals.ROWS[name].expected)


def test_a_lenient_answer_differs_from_the_row_of_an_unsafe_call() -> None:
    lenient = results("inline")["MemGetInfo in a global capture, by its thread"]
    unsafe = dict(refusals.calls_in_cases())["Malloc in a global capture, by its thread"]
    assert lenient != list(unsafe.expected)
