# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The parts behind ``tools/dev.py``. Standard library only: it runs before anything is installed."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def underscored(name: str) -> str:
    """A distribution's name as in the names of wheels and of metadata folders."""
    return name.replace("-", "_")


class WorkspaceError(Exception):
    """What the user has to know and do; ``dev.py`` prints it without a traceback and exits with 1."""
