# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Runs the hooks of .pre-commit-config.yaml: `dev.py lint`."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from . import ROOT, tool_venv

FOLDER = ROOT / "build" / "lint"


def pre_commit() -> Path:
    """Returns the program pre-commit, which is installed unless it is up to date."""
    tool_venv.make(FOLDER, ROOT / "requirements-lint.txt", "installing pre-commit")
    return FOLDER / "venv" / "bin" / "pre-commit"


def run(arguments: Sequence[str]) -> int:
    """Runs the hooks on all files, or with these arguments of `pre-commit run`; returns the exit status."""
    command = [pre_commit(), "run", *(arguments or ["--all-files"])]
    return subprocess.run(command, cwd=ROOT).returncode
