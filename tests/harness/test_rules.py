# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The rules of these suites, each with a case that it must refuse."""

from __future__ import annotations

import ast
import itertools
import sys
import textwrap
import types
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.harness import leaks, parts, recorded, skips, sweeps
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


_RECORDED = """
@pytest.mark.recorded("tests/harness/skips.py")
@pytest.mark.parametrize("holds", [True, {breaks}])
def test_long(holds): assert holds
"""


def test_a_recorded_pass_is_valid_until_its_files_change_except_in_a_complete_run(run, tmp_path):
    records = tmp_path / "records.json"
    settings = {"MUSA_TESTS_RECORDS": str(records), "MUSA_TESTS_NO_SKIP": "1"}
    assert "2 passed" in run(_RECORDED.format(breaks=1), **settings), "nothing is recorded yet"
    assert not records.exists(), "an ordinary run recorded a pass"
    assert "2 passed" in run(_RECORDED.format(breaks=1), "--full", **settings)
    assert "2 skipped" in run(_RECORDED.format(breaks=1), **settings)
    assert "2 passed" in run(_RECORDED.format(breaks=1), "--full", **settings)
    digest = recorded.digest(["tests/harness/skips.py"])
    records.write_text(records.read_text().replace(digest, "of other files"))
    assert "2 passed" in run(_RECORDED.format(breaks=1), **settings)


def test_a_recorded_test_that_fails_loses_its_record(run, tmp_path):
    settings = {"MUSA_TESTS_RECORDS": str(tmp_path / "records.json")}
    assert "1 failed, 1 passed" in run(_RECORDED.format(breaks=0), "--full", **settings)
    assert "1 failed, 1 skipped" in run(_RECORDED.format(breaks=0), **settings)


@pytest.fixture
def recorded_folder(tmp_path):
    """A folder of a tree that has the files of every record."""
    for name in recorded.ALWAYS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


def test_the_digest_of_a_recorded_test_depends_on_names_and_contents(recorded_folder):
    root = recorded_folder.parent
    with pytest.raises(FileNotFoundError, match="folder"):
        recorded.digest(["folder"], root)
    digests = set()
    for name, content in (("one", "x"), ("one", "y"), ("two", "y")):
        (recorded_folder / name).write_text(content)
        digests.add(recorded.digest(["folder"], root))
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("name", "code", "commented", "changed"),
    [
        (
            "a.cpp",
            "#include <x>\nint f() { return 1; }\n",
            "// One.\n#include <x>  // why\n\nint f() { return 1; }\n",
            "#include <y>\nint f() { return 1; }\n",
        ),
        ("a.h", "#define N 1\n", "/* Two\n lines. */\n#define N 1\n", "#define N 2\n"),
        ("CMakeLists.txt", "set(X 1)\n", "# One.\nset(X 1)  # why\n", "set(X 2)\n"),
        ("a.py", "x = '#1'\n", "# One.\nx = '#1'  # why\n", "x = '#2'\n"),
        ("a.py", "if x:\n    y\n    z\n", "if x:\n    y\n    # Why.\n    z\n", "if x:\n    y\nz\n"),
    ],
)
def test_comments_do_not_change_the_digest_of_a_recorded_test(
    recorded_folder, name, code, commented, changed
):
    digests = []
    for content in (code, commented, changed):
        (recorded_folder / name).write_text(content)
        digests.append(recorded.digest(["folder"], recorded_folder.parent))
    assert digests[0] == digests[1] != digests[2]


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


def without_promise(files):
    """The test files that have no docstring."""
    return [file.name for file in files if not ast.get_docstring(ast.parse(file.read_text()))]


def test_every_test_file_states_its_promise(tmp_path):
    files = list((ROOT / "tests").glob("*/test_*.py"))
    assert len(files) > 100 and without_promise(files) == []
    (tmp_path / "test_bad.py").write_text("import os\n\n\ndef test_it():\n    assert os.name\n")
    assert without_promise([tmp_path / "test_bad.py"]) == ["test_bad.py"]
