# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The parts behind ``tools/dev.py``. Standard library only: it runs before anything is installed."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class WorkspaceError(Exception):
    """What the user has to know and do; ``dev.py`` prints it without a traceback and exits with 1."""
