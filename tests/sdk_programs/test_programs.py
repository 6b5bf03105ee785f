# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Public MUSA programs below the folder that MUSA_SDK_PROGRAMS names, on the installed SDK."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.harness import skips
from tests.musa_emulator import sdk
from tests.sdk_programs import programs
from tests.sdk_programs.judge import Judge
from tests.sdk_programs.programs import Program

pytestmark = pytest.mark.once

FOLDER = os.environ.get("MUSA_SDK_PROGRAMS", "")


def _found() -> list[Program]:
    if not FOLDER:
        return []
    listed = programs.load(Path(FOLDER))[1]
    return [program for program in listed if program.source.folder(Path(FOLDER)).is_dir()]


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    return Judge(Path(FOLDER), tmp_path_factory.mktemp("sdk-programs"), sdk.HOME)


@pytest.mark.parametrize(
    "program", _found() or [None], ids=lambda program: program.name if program else "none"
)
def test_program(judge: Judge, program: Program | None) -> None:
    if program is None:
        skips.skip_permanently("sdk-programs")
    outcome = judge.judge(program)
    if program.not_yet:
        assert not outcome.good, f"works now: remove not_yet ({program.not_yet}) from programs.toml"
    else:
        assert outcome.good, f"{outcome.verdict}: {outcome.why}"
