# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The root of this tree, and what git says of it. Standard library only."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def git(*arguments: str) -> str | None:
    """The output of git without the last newline; None if it fails, as outside of a repository, or without
    the parent in a shallow clone."""
    with contextlib.suppress(OSError):
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else None
