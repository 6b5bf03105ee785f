# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Code in a fork of a process with torch runs as in an interpreter of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.harness.subprocesses import run_forked, run_module

pytestmark = pytest.mark.once


def parent(**environment: str) -> int:
    return int(run_forked("import os; print(os.getppid())", **environment).stdout)


def test_only_variables_that_torch_reads_while_imported_need_an_interpreter(tmp_path: Path) -> None:
    server = parent()
    assert server != os.getpid()
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    assert parent(MUSA_ANY="1") == parent(PYTHONPATH=path) == server
    assert parent(TORCHINDUCTOR_CACHE_DIR=str(tmp_path)) == server
    assert parent(OMP_NUM_THREADS="3") == parent(PYTHONOPTIMIZE="1") == os.getpid()


def test_folders_in_pythonpath_come_before_installed_packages(tmp_path: Path) -> None:
    present = os.environ.get("PYTHONPATH")
    path = os.pathsep.join(filter(None, [str(tmp_path), present]))
    for name in ("pluggy", "only_here"):
        (tmp_path / f"{name}.py").write_text("print(__name__, __file__)\n")
    done = run_forked("import pluggy, only_here", PYTHONPATH=path)
    assert done.stdout.splitlines() == [f"{name} {tmp_path / name}.py" for name in ("pluggy", "only_here")], (
        done.stderr
    )
    assert run_forked("import only_here").returncode == 1


def test_status_and_both_streams_are_returned() -> None:
    done = run_forked("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    done = run_forked("raise SystemExit('a reason')")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "a reason\n")
    assert run_forked("import os; os.abort()").returncode == -6


def test_a_fork_ends_as_an_interpreter_does() -> None:
    """Functions of atexit run, then objects of the module are deleted, also those in reference cycles."""
    code = """
import atexit
class Told:
    def __init__(self, name): self.name = name
    def __del__(self): print("gone", self.name)
plain, circle = Told("plain"), Told("circle")
circle.itself = circle
atexit.register(print, "atexit")
"""
    told = run_forked(code).stdout.splitlines()
    assert told[0] == "atexit" and sorted(told[1:]) == ["gone circle", "gone plain"]


def test_a_module_runs_as_a_program(tmp_path: Path) -> None:
    (tmp_path / "shown.py").write_text("import sys\nprint(__name__, sys.argv[1:])\n")
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    assert run_module("shown", "a", "b", PYTHONPATH=path).stdout == "__main__ ['a', 'b']\n"
    assert "No module named nowhere_at_all" in run_module("nowhere_at_all").stderr
