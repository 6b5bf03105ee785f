# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Separate environments for tools, such as those of the manual."""

import sys
from pathlib import Path

from . import ROOT, packages
from .progress import run_logged


def make(folder: Path, requirements: Path, title: str) -> None:
    """Makes `folder`/venv with the pinned requirements, unless it is up to date.

    title: title of the installation step. Logs are named after the folder.
    """
    venv = folder / "venv"
    stamp = venv / "musa-requirements.txt"
    text = requirements.read_text()
    if packages.matches(stamp, text):
        return
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "venv", "--clear", str(venv)]
    run_logged(f"making {venv.relative_to(ROOT)}", command, packages.LOGS / f"{folder.name}.venv.log")
    command = [str(venv / "bin" / "python"), "-m", "pip", "install", "-r", str(requirements)]
    log = packages.LOGS / f"{folder.name}.requirements.log"
    run_logged(title, command, log, packages.build_environment())
    stamp.write_text(text)
