# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The record of the last complete run of each file here: last_full_run.json."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.device import DEVICE, EXECUTION_MODE, MEMORY_MODE

if TYPE_CHECKING:
    from tests.musa_compile.known_failures import Cause

LAST_FULL_RUN = Path(__file__).with_name("last_full_run.json")

_outcomes: dict[str, str] = {}
_figures: dict[str, dict[str, int]] = {}


def note(report: pytest.TestReport) -> None:
    """Store the outcome of a test."""
    if report.failed:
        _outcomes[report.nodeid] = "failed"
    elif report.when == "call":
        known = hasattr(report, "wasxfail") and report.skipped
        _outcomes.setdefault(report.nodeid, "known failures" if known else report.outcome)
    elif report.skipped:
        _outcomes[report.nodeid] = "skipped"


def note_figures(file: str, **figures: int) -> None:
    """Store figures of a test file for its record, such as a number of samples."""
    _figures.setdefault(Path(file).name, {}).update(figures)


def write(tests: Mapping[str, Cause | None]) -> None:
    """Record each file whose tests all ran without a failure.

    Args:
        tests: the id of each test of the session, with the cause of its known failure or None.
    """
    if DEVICE == "cpu" or EXECUTION_MODE != "inline" or MEMORY_MODE not in ("", "shared"):
        return
    import torch

    records = json.loads(LAST_FULL_RUN.read_text()) if LAST_FULL_RUN.is_file() else {}
    files: dict[str, list[str]] = {}
    for test in tests:
        path = Path(test.split("::")[0])
        if path.parent.name == "musa_compile":
            files.setdefault(path.name, []).append(test)
    for file, names in files.items():
        counts = Counter(_outcomes.get(name, "not run") for name in names)
        if counts["failed"] or counts["not run"]:
            continue  # later runs are not compared with a failed one
        records[file] = {
            "date": datetime.date.today().isoformat(),
            "torch": torch.__version__,
            **dict(sorted(counts.items())),
            **_figures.get(file, {}),
            "causes": {
                name.split("::")[1]: cause.reason
                for name, cause in tests.items()
                if cause is not None and name in names
            },
        }
    LAST_FULL_RUN.write_text(json.dumps(records, indent=1, sort_keys=True) + "\n")
