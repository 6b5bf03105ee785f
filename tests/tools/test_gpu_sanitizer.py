# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`dev.py gpu --sanitize`: the errors in a log of compute-sanitizer, and the refusals of the command."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.harness import records
from workspace import WorkspaceError, gpu, gpu_sanitizer

pytestmark = pytest.mark.once

CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
INVALID = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at scan_kernel+0x120
=========     Address 0x7f00 is out of bounds
========= Invalid __global__ read of size 4 bytes
========= ERROR SUMMARY: 2 errors
"""
RACE = """========= Error: Race reported between Write access at k+0x10 and Read access at k+0x20 [4 hazards]
========= RACECHECK SUMMARY: 3 hazards displayed (1 error, 2 warnings)
"""
# Writes the log and the report that the test prepared.
STUB = """#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in
    --log-file) cp "$STUB_LOG" "$2" ;;
    --junitxml=*)
      printf '<testsuites><testsuite><testcase classname="a" name="b"/></testsuite></testsuites>' \\
        > "${1#--junitxml=}" ;;
  esac
  shift
done
"""


@pytest.mark.parametrize(
    ("text", "count"), [(CLEAN, 0), (INVALID, 2), (RACE, 1), ("", None), ("killed", None)]
)
def test_errors_of_a_log(text: str, count: int | None) -> None:
    assert gpu_sanitizer.errors(text) == count


def test_each_error_is_reported_once() -> None:
    assert gpu_sanitizer.told(INVALID) == ["Invalid __global__ read of size 4 bytes"]
    assert len(gpu_sanitizer.told(RACE)) == 1


class Cell(gpu.Cell):
    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root

    @property
    def folder(self) -> Path:
        return self.root


@pytest.mark.parametrize(("text", "status"), [(CLEAN, 0), (INVALID, 1), ("no summary\n", 1)])
def test_an_error_or_a_missing_summary_is_a_failure(
    text: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = tmp_path / "bin" / "compute-sanitizer"
    stub.parent.mkdir()
    stub.write_text(STUB)
    stub.chmod(stub.stat().st_mode | stat.S_IEXEC)
    (tmp_path / "log").write_text(text)
    monkeypatch.setenv("PATH", f"{stub.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("STUB_LOG", str(tmp_path / "log"))
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    cell = Cell(tmp_path)
    cell.tree.mkdir(parents=True)
    found = {"device": "a GPU", "torch": "2.11", "gpus": 2}
    assert gpu_sanitizer.run(cell, found, ["memcheck"], parts=2, limit=20) == status
    row = records.read("gpu_sanitizer")["tools"]["memcheck"]
    assert row["passed"] == 2 and row["failed"] == 0
    assert row["errors"] == (4 if text == INVALID else 0)
    assert len(row["without_summary"]) == (0 if "SUMMARY" in text else 2)
    # A run of one tool keeps the rows of the others, unless they are of another GPU or torch.
    for torch, tools in (("2.11", {"memcheck", "racecheck"}), ("2.13", {"racecheck"})):
        gpu_sanitizer.run(cell, {**found, "torch": torch}, ["racecheck"], parts=1, limit=20)
        assert set(records.read("gpu_sanitizer")["tools"]) == tools


def test_an_unknown_tool_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="is no tool: memcheck, racecheck, synccheck"):
        gpu_sanitizer.run(Cell(tmp_path), {}, ["initcheque"], parts=1, limit=1)
