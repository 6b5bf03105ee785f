# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The rules of these suites, each with a case that it must refuse."""

from __future__ import annotations

import itertools
import sys
import textwrap
import types
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.harness import leaks, parts, skips, sweeps
from tests.harness.subprocesses import run_python

# Nothing here depends on the execution mode of this process.
pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(tmp_path):
    """Run a test file of its own under the rules of tests/conftest.py; gives pytest's output."""

    def run(code: str, *options: str, **environment: str) -> str:
        path = tmp_path / "test_sample.py"
        path.write_text("import pytest\n" + textwrap.dedent(code))
        arguments = ["-m", "pytest", "-p", "tests.conftest", "-c", str(ROOT / "pyproject.toml"), "-q"]
        environment = {"PYTHONPATH": f"{ROOT}:{':'.join(sys.path[1:])}", **environment}
        return run_python(*arguments, f"--rootdir={tmp_path}", *options, str(path), **environment).stdout

    return run


_SKIPS = """
def test_explained():
    pytest.skip("needs two devices")

def test_unexplained():
    pytest.skip()

@pytest.mark.skip
def test_marked():
    pass

def test_permanent():
    from tests.harness.skips import skip_permanently
    skip_permanently("host-addressable")

def test_plain():
    pass
"""


def test_a_skip_without_a_reason_fails(run):
    out = run(_SKIPS, MUSA_TESTS_NO_SKIP="0")
    assert "1 failed, 1 passed, 2 skipped, 1 error" in out, out
    assert "a skip must say why" in out


def test_where_skips_are_forbidden_only_permanent_reasons_skip(run):
    out = run(_SKIPS, MUSA_TESTS_NO_SKIP="1")
    assert "2 failed, 1 passed, 1 skipped, 1 error" in out, out
    assert "needs two devices" in out


def test_a_module_that_skips_itself_is_judged_too(run):
    code = "pytest.skip('no tool', allow_module_level=True)"
    assert "1 skipped" in run(code, MUSA_TESTS_NO_SKIP="0")
    assert "error" in run(code, MUSA_TESTS_NO_SKIP="1")


def test_an_expected_failure_that_passes_fails(run):
    out = run(
        """
        @pytest.mark.xfail(reason="broken")
        def test_fixed():
            pass

        @pytest.mark.xfail(reason="broken")
        def test_broken():
            assert False
        """
    )
    assert "1 failed, 1 xfailed" in out, out


def test_complete_sweeps_run_on_demand_only(run):
    code = """
        @pytest.mark.full
        def test_thorough(): pass

        def test_quick(full):
            print(f"full is {full}")
        """
    assert "1 passed, 1 deselected" in run(code)
    assert "2 passed" in run(code, "--full")


def test_parts_together_take_each_test_of_a_file_once(run):
    code = """
        @pytest.mark.parametrize("n", range(5))
        def test_it(n): pass
        """
    assert "3 passed, 2 deselected" in run(code, "--part=1/2")
    assert "2 passed, 3 deselected" in run(code, "--part=2/2")


@pytest.mark.parametrize("text", ["3/2", "0/2", "1", "a/b"])
def test_a_part_that_does_not_exist_is_refused(text):
    config = types.SimpleNamespace(getoption=lambda name: text)
    with pytest.raises(pytest.UsageError, match="two numbers I/N are expected"):
        parts.chosen(config)


class Item(NamedTuple):
    """The attributes of a test that parts.left_out reads."""

    path: Path
    n: int


def test_parts_leave_fault_sweeps_and_conformance_whole():
    paths = ("tests/a/test_faults.py", "tests/a/test_fault_sweep.py", "tests/conformance/test_ops.py")
    items = [Item(Path(path), n) for path in paths for n in range(3)]
    left = parts.left_out(items, 1, 2)
    assert [(item.path.name, item.n) for item in left] == [("test_faults.py", 1)]


def test_an_unknown_permanent_reason_is_an_error():
    with pytest.raises(KeyError):
        skips.skip_permanently("laziness")


def test_growth_of_device_memory_is_a_leak(monkeypatch):
    figures = itertools.chain([{0: 512, 1: 0}], itertools.repeat({0: 1024, 1: 0}))
    monkeypatch.setattr(leaks, "allocated_bytes", lambda: next(figures))
    with pytest.raises(leaks.Leak, match="512"), leaks.no_leak():
        pass


def test_memory_that_only_a_cycle_holds_is_no_leak(monkeypatch):
    figures = iter([{0: 512}, {0: 1024}, {0: 512}])
    monkeypatch.setattr(leaks, "allocated_bytes", lambda: next(figures))
    with leaks.no_leak():
        pass


def test_the_legs_of_a_run_let_every_call_fail_once(monkeypatch):
    monkeypatch.delenv(sweeps.COMPLETE, raising=False)
    settings = [("inline", ""), ("async", ""), ("inline", "strict")]
    parts = [sweeps.calls_to_fail(100, mode, memory) for mode, memory in settings]
    assert sorted(itertools.chain(*parts)) == list(range(1, 100))
    monkeypatch.setenv(sweeps.COMPLETE, "1")
    assert sweeps.calls_to_fail(100, "lazy", "") == range(1, 100)


_GARBAGE = """
import gc
import weakref

left = []

class Cycle:
    def __init__(self):
        self.itself = self

def test_that_leaves_a_cycle():
    gc.disable()
    left.append(weakref.ref(Cycle()))
    assert left[0]() is not None

def test_after_it():
    gc.enable()
    assert left[0]() is None
"""


def test_no_test_starts_with_garbage_of_an_earlier_one(run):
    assert "2 passed" in run(_GARBAGE)
