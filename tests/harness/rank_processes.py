# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The same program in several processes, which know by RANK and WORLD_SIZE which they are."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Ended:
    status: int
    out: str
    err: str
    seconds: float


def run_ranks(
    code: str,
    ranks: int,
    settings: dict[int, dict[str, str]] | None = None,
    kept: tuple[str, ...] = (),
    timeout: float = 120,
    **shared: str,
) -> list[Ended]:
    """Run the code in a process per rank, each with a device of its own.

    Args:
        settings: variables of single ranks.
        kept: variables of this process that the ranks get, of those that start with MUSA_, MCCL_, TORCH_MCCL_
            or TORCH_FR_; they start without the rest.
        shared: variables of all ranks.
    """
    prefixes = ("MUSA_", "MCCL_", "TORCH_MCCL_", "TORCH_FR_")
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(prefixes) or name in kept
    }
    common = {
        **inherited,
        "OMP_NUM_THREADS": "1",
        "MUSA_EMULATOR_DEVICES": str(ranks),
        "WORLD_SIZE": str(ranks),
        "PYTHONPATH": str(ROOT),
        **shared,
    }
    start = time.monotonic()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)],
            env={**common, "RANK": str(rank), **(settings or {}).get(rank, {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    ended = []
    try:
        for process in processes:
            out, err = process.communicate(timeout=timeout)
            ended.append(Ended(process.returncode, out, err, time.monotonic() - start))
    finally:
        for process in processes:
            process.kill()
    return ended
