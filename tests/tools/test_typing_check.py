# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`dev.py lint --types` reads the modules of packs, and checks lines of mistakes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from workspace import ROOT, WorkspaceError, typing_check

pytestmark = pytest.mark.once


def test_the_modules_of_packs_are_read_from_their_settings():
    modules = typing_check.pack_modules(ROOT)
    assert modules["amp"] == "musa_amp" and modules["mccl"] == "musa_distributed.mccl"
    assert all(re.fullmatch(r"\w+(\.\w+)*", module) for module in modules.values())


def test_the_samples_have_mistakes():
    marks = {
        path.name: path.read_text().count("# type: ignore\n") for path in typing_check.SAMPLES.glob("*.py")
    }
    assert marks["uses.py"] == 0 and marks["wrong.py"] > 30 and marks["wrong_import.py"] == 1


def test_an_environment_without_torch_is_refused(tmp_path: Path):
    with pytest.raises(WorkspaceError, match=r"has no torch\.\nFix: .*dev\.py setup"):
        typing_check.prepare(tmp_path)
