# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Ranks as processes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Ended:
    status: int
    out: str
    err: str


def run_ranks(
    code: str, folder: Path, ranks: int = 2, settings: dict[int, dict[str, str]] | None = None, **shared: str
) -> list[Ended]:
    """Run the code, which has all names of binding.py, in a process per rank; ``settings``: a rank's own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MUSA_", "MCCL_"))}
    mode = os.environ.get("MUSA_EMULATOR_MODE")
    meeting = tempfile.mkdtemp(dir=folder)  # a run must not find the id that one before it left
    common = {
        **kept,
        **({"MUSA_EMULATOR_MODE": mode} if mode else {}),
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "OMP_NUM_THREADS": "1",
        "MUSA_EMULATOR_DEVICES": str(ranks),
        "MCCL_TEST_FOLDER": meeting,
        "WORLD_SIZE": str(ranks),
        "PYTHONPATH": str(ROOT),
        **shared,
    }
    text = "from tests.musa_emulator_mccl.binding import *\n" + textwrap.dedent(code)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", text],
            env={**common, "RANK": str(rank), **(settings or {}).get(rank, {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    try:
        outputs = [process.communicate(timeout=120) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [
        Ended(process.returncode, out, err)
        for process, (out, err) in zip(processes, outputs, strict=True)
    ]


def outputs_of(code: str, folder: Path, ranks: int = 2, **options) -> list[str]:
    """What the ranks print; all must succeed."""
    ended = run_ranks(code, folder, ranks, **options)
    assert [one.status for one in ended] == [0] * ranks, "\n".join(one.err for one in ended)
    return [one.out.strip() for one in ended]
