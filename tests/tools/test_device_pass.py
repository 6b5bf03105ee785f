# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`dev.py lint --device-pass`: the files that it checks and refuses, and its last result for the tree."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import dev
from workspace import device_pass

pytestmark = pytest.mark.once

ROOT = Path(dev.__file__).resolve().parents[1]
BAD = ROOT / "tests" / "musa_emulator" / "two_pass"
FIX = "Fix: python3 tools/dev.py lint --device-pass"

needs_clang = pytest.mark.skipif(
    device_pass.clang_missing() is not None, reason=str(device_pass.clang_missing())
)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A tree with a good and a bad kernel file, and no record."""
    csrc = tmp_path / "packages" / "musa-amp" / "csrc"
    csrc.mkdir(parents=True)
    shutil.copy(BAD / "accepted.mu", csrc / "good.mu")
    shutil.copy(BAD / "host_method_in_kernel.mu", csrc / "bad.mu")
    monkeypatch.setattr(device_pass, "ROOT", tmp_path)
    monkeypatch.setattr(device_pass, "PACKAGES", tmp_path / "packages")
    monkeypatch.setattr(device_pass, "RECORD", tmp_path / "record.json")
    monkeypatch.setattr(device_pass, "prepare", list)
    monkeypatch.setattr(device_pass, "kernel_files", lambda: kernel_files(tmp_path))
    return tmp_path


kernel_files = device_pass.kernel_files
GOOD_FILE, BAD_FILE = "packages/musa-amp/csrc/good.mu", "packages/musa-amp/csrc/bad.mu"


@needs_clang
def test_the_gate_counts_a_bad_file_and_records_it_until_it_is_fixed(tree, capsys):
    assert device_pass.run(everything=False) == 1
    record = json.loads((tree / "record.json").read_text())
    assert record["files"][BAD_FILE]["refused"] == ["device"]
    assert record["files"][GOOD_FILE]["refused"] == []
    assert "operator float" in capsys.readouterr().out
    assert device_pass.chosen([GOOD_FILE, BAD_FILE], record, everything=False) == ([BAD_FILE], 0)
    shutil.copy(tree / GOOD_FILE, tree / BAD_FILE)
    assert device_pass.run(everything=False) == 0
    assert json.loads((tree / "record.json").read_text())["files"][BAD_FILE]["refused"] == []


def test_changed_files_are_chosen_and_files_of_a_changed_header(tree):
    csrc = tree / "packages" / "musa-amp" / "csrc"
    (csrc / "engines").mkdir()
    (csrc / "engines" / "inner.h").write_text("// one\n")
    (csrc / "outer.h").write_text('#include "engines/inner.h"\n')
    names = []
    for number in range(20):
        (csrc / f"k{number}.mu").write_text('#include "outer.h"\n')
        names.append(f"packages/musa-amp/csrc/k{number}.mu")
    record = {"files": {name: {**device_pass.digests(name), "refused": []} for name in names}}
    assert device_pass.chosen(names, record, everything=False) == ([], 0)
    (csrc / "k3.mu").write_text('#include "outer.h"\n// changed\n')
    assert device_pass.chosen(names, record, everything=False) == ([names[3]], 0)
    (csrc / "engines" / "inner.h").write_text("// two\n")
    selected, left_out = device_pass.chosen(names, record, everything=False)
    assert names[3] in selected and len(selected) <= 1 + device_pass.MOST_BY_HEADER
    assert len(selected) + left_out == len(names) and left_out > 0
    assert device_pass.chosen(names, record, everything=True) == (names, 0)


def test_the_sample_exists_and_is_always_chosen():
    names = kernel_files(ROOT)
    assert set(device_pass.SAMPLE) <= set(names)
    record = {"files": {name: {**device_pass.digests(name), "refused": []} for name in device_pass.SAMPLE}}
    selected, _ = device_pass.chosen(list(device_pass.SAMPLE), record, everything=False)
    assert selected == sorted(device_pass.SAMPLE)


def test_every_kernel_file_of_the_tree_is_recorded_as_accepted():
    """Reads the last run over the whole tree; a new file, or one that changed since, must be checked
    again."""
    record = json.loads(device_pass.RECORD.read_text())
    names = kernel_files(ROOT)
    assert set(record["files"]) == set(names), FIX
    assert [name for name in names if record["files"][name]["refused"]] == []
    changed = [name for name in names if record["files"][name]["file"] != device_pass.digests(name)["file"]]
    assert changed == [], FIX
    assert record["passes"] == ["device", "host"] and record["clang"] >= 16
