# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Runs ranks as processes whose code can use the names of binding.py."""

from __future__ import annotations

import tempfile
import textwrap
from pathlib import Path

from tests.harness import rank_processes
from tests.harness.rank_processes import Ended


def run_ranks(
    code: str, folder: Path, ranks: int = 2, settings: dict[int, dict[str, str]] | None = None, **shared: str
) -> list[Ended]:
    """Runs the code in one process per rank; ``settings`` has environment variables of single ranks."""
    return rank_processes.run_ranks(
        "from tests.musa_emulator_mccl.binding import *\n" + textwrap.dedent(code),
        ranks,
        settings,
        kept=("MUSA_EMULATOR_MODE", "MUSA_EMULATOR_MEMORY"),
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
        # A run must not read the id of an earlier run.
        MCCL_TEST_FOLDER=tempfile.mkdtemp(dir=folder),
        **shared,
    )


def outputs_of(code: str, folder: Path, ranks: int = 2, **options) -> list[str]:
    """Returns the output of each rank; all ranks must succeed."""
    ended = run_ranks(code, folder, ranks, **options)
    assert [one.status for one in ended] == [0] * ranks, "\n".join(one.err for one in ended)
    return [one.out.strip() for one in ended]
