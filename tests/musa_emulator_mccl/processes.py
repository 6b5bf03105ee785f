# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Ranks as processes that have the names of binding.py."""

from __future__ import annotations

import tempfile
import textwrap
from pathlib import Path

from tests.harness import rank_processes
from tests.harness.rank_processes import Ended


def run_ranks(
    code: str, folder: Path, ranks: int = 2, settings: dict[int, dict[str, str]] | None = None, **shared: str
) -> list[Ended]:
    """Run the code in a process per rank; ``settings``: a rank's own variables."""
    return rank_processes.run_ranks(
        "from tests.musa_emulator_mccl.binding import *\n" + textwrap.dedent(code),
        ranks,
        settings,
        kept=("MUSA_EMULATOR_MODE",),
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
        # A run must not find the id that one before it left.
        MCCL_TEST_FOLDER=tempfile.mkdtemp(dir=folder),
        **shared,
    )


def outputs_of(code: str, folder: Path, ranks: int = 2, **options) -> list[str]:
    """What the ranks print; all must succeed."""
    ended = run_ranks(code, folder, ranks, **options)
    assert [one.status for one in ended] == [0] * ranks, "\n".join(one.err for one in ended)
    return [one.out.strip() for one in ended]
