# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`dev.py lint --types`: every error counts outside of the list of modules, and the list may only shrink."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from workspace import ROOT, WorkspaceError, typing_check
from workspace.typing_check import Error

pytestmark = pytest.mark.once

SOURCE = "packages/one/src/one/part.py"


@pytest.mark.parametrize(
    ("file", "module"),
    [
        (SOURCE, "one.part"),
        ("packages/one/src/one/__init__.py", "one"),
        ("packages/one/src/one/deep/__init__.pyi", "one.deep"),
        ("packages/one/src/one/_C.pyi", "one._C"),
    ],
)
def test_files_belong_to_modules(file, module):
    assert typing_check.module_of(file) == module


def test_an_error_in_a_module_that_is_not_listed_is_reported():
    errors = [Error(SOURCE, 3, "wrong type"), Error("packages/one/src/one/parts.py", 4, "another")]
    assert typing_check.judge_sources(errors, ["one.part"]) == ["packages/one/src/one/parts.py:4: another"]
    assert typing_check.judge_sources(errors, ["one"]) == []


def test_a_listed_module_without_an_error_has_to_leave_the_list():
    [found] = typing_check.judge_sources([Error(SOURCE, 3, "wrong type")], ["one.part", "one.other"])
    assert "one.other has no error" in found and "NOT_YET_TYPED" in found


def test_every_entry_of_the_list_is_a_module():
    for name in typing_check.NOT_YET_TYPED:
        path = name.replace(".", "/")
        assert [*ROOT.glob(f"packages/*/src/{path}.py"), *ROOT.glob(f"packages/*/src/{path}/__init__.py")], (
            name
        )


def test_an_error_outside_of_marked_lines_is_reported():
    errors = [Error("uses.py", 2, "bad"), Error("wrong.py", 1, "bad")]
    found = typing_check.judge_samples("mypy", errors, {"uses.py": set(), "wrong.py": {1}})
    assert found == ["uses.py:2: mypy: bad"]


def test_a_marked_line_without_an_error_is_reported():
    found = typing_check.judge_samples("pyright", [Error("wrong.py", 1, "bad")], {"wrong.py": {1, 4}})
    assert found == ["wrong.py:4: pyright reports no error in a line that is marked as wrong"]


def test_only_marks_at_the_end_of_a_line_count():
    assert typing_check.marked_lines("f(1)  # wrong\n# wrong input\ng(2)\n") == {1}


def test_output_of_mypy_is_read():
    report = {"file": SOURCE, "line": 3, "message": "Incompatible", "code": "arg-type", "severity": "error"}
    note = {**report, "severity": "note"}
    output = "".join(f"{json.dumps(entry)}\n" for entry in (report, note)) + "Found 1 error\n"
    assert typing_check.mypy_errors(output) == [Error(SOURCE, 3, "Incompatible  [arg-type]")]


def test_output_of_pyright_is_read():
    place = {"start": {"line": 2, "character": 0}}
    report = {"file": str(ROOT / SOURCE), "range": place, "severity": "error", "message": "Bad\n  Because"}
    reports = [{**report, "rule": "reportArgumentType"}, {**report, "severity": "warning"}]
    errors = typing_check.pyright_errors(json.dumps({"generalDiagnostics": reports}))
    assert errors == [Error(SOURCE, 3, "Bad  [reportArgumentType]")]


def test_the_modules_of_packs_are_read_from_their_settings():
    modules = typing_check.pack_modules(ROOT)
    assert modules["amp"] == "musa_amp" and modules["mccl"] == "musa_distributed.mccl"
    assert all(re.fullmatch(r"\w+(\.\w+)*", module) for module in modules.values())


def test_all_packages_are_checked():
    names = typing_check.import_packages(ROOT)
    assert {"musa_runtime", "torch_musa", "musa_amp", "musa_emulator"} <= set(names)


def test_the_samples_have_right_and_wrong_uses():
    marks = {
        path.name: len(typing_check.marked_lines(path.read_text()))
        for path in typing_check.SAMPLES.glob("*.py")
    }
    assert marks["uses.py"] == 0 and marks["wrong.py"] > 30 and marks["wrong_import.py"] == 1


def test_an_environment_without_torch_is_refused(tmp_path: Path):
    with pytest.raises(WorkspaceError, match=r"has no torch\.\nFix: .*dev\.py setup"):
        typing_check.prepare(tmp_path)
