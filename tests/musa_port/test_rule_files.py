# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Rule files choose names and nothing else: malformed ones are RuleError, and no rule writes outside of the
output folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from musa_port import files, rules
from musa_port.engine import Engine

pytestmark = pytest.mark.once

JUNK = ("3", "-1.5", "nan", "true", '"text"', "[]", "[3]", "[[]]", "{}", "{a = 3}", "{a = []}", '{"" = "x"}',
        "1979-05-27", '["a", 3]', "[{find = 3}]", "[{}]", '[{find = "("}]')  # fmt: skip
PHRASE = 'phrases = [{find = "(a)", replace = "%s", why = "w"}]'
MALFORMED = [
    "", "version = 2", "version = true", "version = [1]", "version", "[[[", "version = 1\nunknown = 3",
    'version = 1\nextends = "nosuch"', 'version = 1\nextends = "self"', 'version = 1\nextends = "\\u0000"',
    *(f"version = 1\n{PHRASE % replacement}" for replacement in (r"\\2", r"\\g<x>", r"\\q")),
    "a = " + "[" * 5000,
    *(f"version = 1\n{key} = {junk}" for key in sorted(rules._KEYS - {"version"}) for junk in JUNK),
]  # fmt: skip


def test_malformed_rule_files_are_rule_errors(tmp_path: Path) -> None:
    path = tmp_path / "self.toml"
    refused = 0
    for text in MALFORMED:
        path.write_text(text, encoding="utf-8")
        try:
            engine = Engine(rules.load(path))
            engine.port("a b // c\n#include <a.h>\n"), engine.path("a")
        except rules.RuleError as error:
            assert ".toml" in str(error)
            refused += 1
    assert len(MALFORMED) > 180 and refused > 140, refused
    for data in (b"version = 1\nabout = '\xff'", b"\x00", bytes(range(256))):
        path.write_bytes(data)
        with pytest.raises(rules.RuleError):
            rules.load(path)
    with pytest.raises(rules.RuleError, match="cannot be read"):
        (tmp_path / "folder.toml").mkdir()
        rules.load(tmp_path / "folder.toml")


def test_the_command_line_reports_a_malformed_file(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text("version = 1\nnames = 3\n")
    command = [sys.executable, "-m", "musa_port", "--rules", str(path), str(tmp_path), "--dry-run"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "the value of names" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("before, after", [("kernel", "../kernel"), ("kernel", "/nonexistent/kernel")])
def test_no_rule_writes_outside_of_the_output_folder(tmp_path: Path, before: str, after: str) -> None:
    source = tmp_path / "in" / "kernel.cu"
    source.parent.mkdir()
    source.write_text("int x;\n")
    engine = Engine(rules.Rules(paths={before: after}))
    with pytest.raises(files.InputError, match="outside of the output folder"):
        files.write(files.tree_sources(source.parent), engine, tmp_path / "out")
    assert not (tmp_path / "kernel.cu").exists() and not (tmp_path / "out").exists()


def test_links_in_the_output_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.cu").write_text("int x;\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.cu").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(files.InputError, match="Fix: "):
        files.write(files.tree_sources(tmp_path / "in"), Engine(rules.Rules()), tmp_path / "out")
    assert not (tmp_path / "elsewhere").exists()
