# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`dev.py matrix` copies the tree, installs torch and records the results; its table shows a failed step."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from workspace import ROOT, WorkspaceError, matrix, packages

pytestmark = pytest.mark.once

JUNIT = """<?xml version="1.0"?><testsuites><testsuite>
<testcase classname="tests.a" name="test_good"/>
<testcase classname="tests.a" name="test_bad"><failure message="no">text</failure></testcase>
<testcase classname="tests.a" name="test_broken"><error message="no">text</error></testcase>
<testcase classname="tests.a" name="test_left_out"><skipped message="no">text</skipped></testcase>
</testsuite></testsuites>"""
GOOD = {
    "torch": {"version": "2.14.1+cu130", "stand_ins": []},
    "built": ["a", "b"],
    "imported": True,
    "tests": {"passed": 3, "failed": 0, "skipped": 1, "failures": [], "stopped": []},
    "stopped": None,
    "seconds": 9,
}
TESTS_FAILED = {"passed": 2, "failed": 1, "skipped": 0, "failures": ["tests.a::test_bad"], "stopped": []}
TESTS_ENDED = {"passed": 2, "failed": 0, "skipped": 0, "failures": [], "stopped": ["quick: Aborted"]}


def test_every_file_of_the_suite_exists():
    assert [name for name in (*matrix.QUICK, *matrix.SAMPLED) if not (ROOT / name).is_file()] == []


def test_every_test_that_is_left_out_exists():
    for name in matrix.LEFT_OUT:
        file, _, test = name.partition("::")
        assert file in matrix.QUICK and f"\ndef {test}(" in (ROOT / file).read_text()


def test_the_copy_follows_the_tree_and_keeps_its_own_folders(tmp_path):
    root, copy = tmp_path / "root", tmp_path / "copy"
    for name in ("a.txt", "gone.txt", "folder/b.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    matrix.copy_tree(root, copy, ["a.txt", "gone.txt", "folder/b.txt"])
    (copy / ".venv").mkdir()
    (copy / ".venv" / "kept").touch()
    os.utime(copy / "a.txt", (1, 1))
    (root / "folder" / "b.txt").write_text("changed")
    matrix.copy_tree(root, copy, ["a.txt", "folder/b.txt"])
    assert (copy / "folder" / "b.txt").read_text() == "changed" and not (copy / "gone.txt").exists()
    assert (copy / "a.txt").stat().st_mtime == 1 and (copy / ".venv" / "kept").exists()


def test_torch_and_packages_for_neither_build_nor_suite_are_left_out_of_the_requirements():
    text = "# a\ntorch==2.13.0\nnumpy==2\n\n# lint\nruff==1\n\n# tests\npytest==9\n\n# examples\ntqdm==4\n"
    assert matrix.without_torch(text) == "# a\nnumpy==2\n\n# tests\npytest==9"
    with pytest.raises(WorkspaceError, match="no one line torch=="):
        matrix.without_torch("numpy==2\n")
    kept = matrix.without_torch((ROOT / "requirements-dev.txt").read_text())
    assert "\npytest==" in kept and not {"torch", "ruff", "tqdm"} & set(re.findall(r"^(\w+)==", kept, re.M))


def test_a_free_threaded_python_gets_versions_that_have_a_wheel_for_it():
    text = '# a\nhypothesis==9; python_version >= "3.11"\nhypothesis==8; python_version < "3.11"\npytest==9\n'
    version = matrix.FREE_THREADED["hypothesis"]
    assert matrix.for_free_threading(text) == f"# a\npytest==9\nhypothesis=={version}\n"


def test_requirements_for_a_cuda_device_are_left_out():
    listed = ["filelock", "cuda-toolkit[cublas]==13; platform_system == 'Linux'", "nvidia-cudnn-cu13==9"]
    listed += ["triton~=3.8; python_version < '3.15'", "sympy>=1", 'optree>=0.13; extra == "optree"']
    assert matrix.needed_on_the_cpu(listed) == ["filelock", "sympy>=1"]


def test_a_python_that_does_not_start_is_named(tmp_path, monkeypatch):
    (tmp_path / "python3.99").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python3.99").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    for version in ("3.98", "3.99"):
        with pytest.raises(WorkspaceError, match=f"python{version} is not on PATH, or does not start"):
            matrix.find_python(version)


def test_results_are_counted_and_failures_named(tmp_path):
    (tmp_path / "a.xml").write_text(JUNIT)
    assert matrix.count([tmp_path / "a.xml"]) == {
        "passed": 1,
        "failed": 2,
        "skipped": 1,
        "failures": ["tests.a::test_bad", "tests.a::test_broken"],
    }


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"stopped": "log\nbuild failed with exit status 1"}, "stopped: build failed with exit status 1"),
        ({"tests": None, "stopped": "x"}, "not run"),
        ({"tests": TESTS_FAILED}, "failed: tests.a::test_bad"),
        ({"tests": TESTS_ENDED}, "ended early: quick: Aborted"),
        ({"imported": False, "tests": None, "stopped": "import failed"}, "no        not run"),
    ],
)
def test_a_combination_that_did_not_pass_is_shown_so(change, expected):
    assert matrix.passed(GOOD)
    assert "3 passed, 0 failed, 1 skipped" in matrix.table({"2.14-3.11": GOOD}, 2)
    entry = {**GOOD, **change}
    assert not matrix.passed(entry)
    assert expected in matrix.table({"2.14-3.11": entry}, 2)


def test_a_step_that_fails_ends_the_combination_and_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(matrix, "RECORD", tmp_path / "record.json")
    monkeypatch.setattr(matrix, "FOLDER", tmp_path / "matrix")
    monkeypatch.setattr(matrix, "install_torch", _no_torch)
    assert matrix.run(["2.12"], [matrix.RUNNING]) == 1
    entry = json.loads((tmp_path / "record.json").read_text())["cells"][f"2.12-{matrix.RUNNING}"]
    assert entry["stopped"] == "no such torch" and not entry["built"] and entry["tests"] is None


def test_wheels_that_fit_every_python_are_made_of_an_up_to_date_build(tmp_path, monkeypatch, capsys):
    tags = {"musa-emulator": "py3-none-linux_x86_64", "musa-runtime": "cp311-cp311-linux_x86_64"}
    for name, tag in tags.items():
        info = tmp_path / "site" / f"{name.replace('-', '_')}-0.1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 0.1.0\n")
        (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nTag: {tag}\n")
        (tmp_path / name).write_text("new")
    made = []
    monkeypatch.setattr(matrix, "WHEELS", tmp_path / "wheels")
    monkeypatch.setattr(packages, "SITE", tmp_path / "site")
    monkeypatch.setattr(packages, "STAMPS", tmp_path)
    monkeypatch.setattr(packages, "package_names", lambda: list(tags))
    monkeypatch.setattr(packages, "current_stamps", lambda options: dict.fromkeys(tags, "new"))
    monkeypatch.setattr(packages, "build_wheel", lambda name, options, folder: made.append(name))
    assert matrix.shared_wheels() == made == ["musa-emulator"]
    (tmp_path / "musa-runtime").write_text("old")
    assert matrix.shared_wheels() == [] and made == ["musa-emulator"]
    assert "are not up to date" in capsys.readouterr().out


def _no_torch(cell: matrix.Cell, python: str, *, installed: bool) -> dict:
    assert not installed and Path(python).exists() and (cell.tree / "tools" / "dev.py").is_file()
    raise WorkspaceError("no such torch")


def results(entry: dict, python: str) -> str:
    """A row of the table in docs/design/releases.md, up to its figures."""
    tests = entry["tests"]
    counts = f"{tests['passed']:,} passed, {tests['failed']} failed, {tests['skipped']} skipped"
    return rf"\| {re.escape(entry['torch']['version'])} \| {re.escape(python)} \| [^|]*{counts}[^|]*\|"


def test_the_page_has_the_recorded_results():
    record = json.loads(matrix.RECORD.read_text())
    page = (ROOT / "docs" / "design" / "releases.md").read_text()
    for name, entry in record["cells"].items():
        if entry["tests"]:
            assert re.search(results(entry, name.partition("-")[2]), page), name
    other = {**GOOD, "tests": {**GOOD["tests"], "passed": 7777}}
    assert not re.search(results(other, "3.12"), page)


def test_a_torch_that_is_not_served_is_refused():
    with pytest.raises(WorkspaceError, match=r"torch 2\.10 is not served"):
        matrix.run(["2.10"], [matrix.RUNNING])
