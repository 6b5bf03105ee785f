# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Installing a package again does not make objects out of date that were compiled from its unchanged
files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workspace import file_times

pytestmark = pytest.mark.once

LONG_AGO = 1_000_000_000 * 10**9


def install(site: Path, files: dict[str, str]) -> None:
    """Writes the files and their list, as pip does."""
    metadata = site / "musa_thing-1.0.dist-info"
    metadata.mkdir(exist_ok=True)
    (site / "musa_thing").mkdir(exist_ok=True)
    for name, text in files.items():
        (site / name).write_text(text)
    (metadata / "RECORD").write_text("".join(f"{name},,\n" for name in (*files, f"{metadata.name}/RECORD")))


def test_only_changed_files_are_newer_after_an_installation(tmp_path: Path) -> None:
    same, changed, removed, new = (f"musa_thing/{name}.h" for name in ("same", "changed", "removed", "new"))
    install(tmp_path, {same: "1", changed: "1", removed: "1"})
    for name in (same, changed, removed):
        os.utime(tmp_path / name, ns=(LONG_AGO, LONG_AGO))
    with file_times.kept(tmp_path, "musa-thing"):
        (tmp_path / removed).unlink()
        install(tmp_path, {same: "1", changed: "2", new: "1"})
    assert (tmp_path / same).stat().st_mtime_ns == LONG_AGO
    assert (tmp_path / changed).stat().st_mtime_ns > LONG_AGO
    assert (tmp_path / new).exists() and not (tmp_path / removed).exists()


def test_the_first_installation_keeps_no_times(tmp_path: Path) -> None:
    with file_times.kept(tmp_path, "musa-thing"):
        install(tmp_path, {"musa_thing/a.h": "1"})
    assert (tmp_path / "musa_thing/a.h").stat().st_mtime_ns > LONG_AGO
