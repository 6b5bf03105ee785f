# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The modules of ``tools/dev.py``. Standard library only: it runs before anything is installed."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(1, str(ROOT))  # tests.harness.records, which needs the standard library only


def underscored(name: str) -> str:
    """Returns a distribution's name as used in the names of wheels and metadata folders."""
    return name.replace("-", "_")


class WorkspaceError(Exception):
    """An error for the user; ``dev.py`` prints its message without a traceback and exits with 1."""
