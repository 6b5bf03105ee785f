# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Programs of two processes, as users start them with a launcher. Each uses `reporting` for its results."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.harness.subprocesses import run_python

ROOT = Path(__file__).resolve().parents[3]
RANKS = 2
LIMIT_S = 400


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def run(
    program: str, arguments: Sequence[str], device: str, launcher: Sequence[str], folder: Path
) -> list[dict[str, Any]]:
    """The report of each rank; raises RuntimeError with the end of the output if the program fails."""
    import torch

    folder.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "OMP_NUM_THREADS": "1",
        "MUSA_ECOSYSTEM_DEVICE": device,
        "MUSA_ECOSYSTEM_REPORTS": str(folder),
        "MASTER_PORT": str(free_port()),
    }
    command = [sys.executable, *launcher, str(Path(__file__).with_name(program)), *arguments]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    reports = [folder / f"rank{rank}.pt" for rank in range(RANKS)]
    if done.returncode != 0 or not all(path.is_file() for path in reports):
        output = (done.stdout + done.stderr)[-3000:]
        raise RuntimeError(f"{program} on {device} ended with status {done.returncode}:\n{output}")
    return [torch.load(path) for path in reports]


def run_starting_ranks(
    folder: Path, code: str, *arguments: str, ranks: int, **environment: str | None
) -> list[dict[str, Any]]:
    """The report of each rank of a program that starts its ranks itself, on two emulated devices.

    The program gets `arguments` and the folder, where rank N writes `rankN.json`.
    """
    folder.mkdir()
    program = folder / "program.py"
    program.write_text(code)
    environment = {"MUSA_EMULATOR_DEVICES": "2", "OMP_NUM_THREADS": "1", "MASTER_PORT": None, **environment}
    done = run_python(str(program), *arguments, str(folder), **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    reports = [json.loads(path.read_text()) for path in sorted(folder.glob("rank*.json"))]
    assert len(reports) == ranks, done.stdout + done.stderr
    return reports


@contextlib.contextmanager
def reporting(rank: int) -> Iterator[dict[str, Any]]:
    """Yields a dict for results, and saves it for the process that started the program."""
    import torch
    from torch.utils._pytree import tree_map

    from tests.ecosystem.observation import Observation

    result: dict[str, Any] = {}
    with Observation() as seen:
        yield result
    host = tree_map(lambda leaf: leaf.detach().cpu() if isinstance(leaf, torch.Tensor) else leaf, result)
    path = Path(os.environ["MUSA_ECOSYSTEM_REPORTS"]) / f"rank{rank}.pt"
    torch.save({"result": host, "summary": seen.summary()}, path)
