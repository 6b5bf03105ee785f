# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The same program in several processes, each with its RANK and WORLD_SIZE."""

from __future__ import annotations

import atexit
import functools
import os
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

from tests.harness import skips
from tests.harness.forkserver import Fork, ForkServer, read_early

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
    """Run the code in one process per rank, each with a device of its own: forks of a process with torch.

    A rank that runs longer than `timeout` seconds is killed, as its status shows.

    Args:
        settings: variables of single ranks.
        kept: variables of this process that the ranks inherit although they start with MUSA_, MCCL_,
            TORCH_MCCL_ or TORCH_FR_; other variables with these prefixes are removed.
        shared: variables of all ranks.
    """
    skips.needs_devices(ranks)
    prefixes = ("MUSA_", "MCCL_", "TORCH_MCCL_", "TORCH_FR_")
    kept = (*kept, "MUSA_HOME")  # the SDK under test
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(prefixes) or name in kept
    }
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    early = {"OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    common = {
        **inherited,
        **early,
        "MUSA_EMULATOR_DEVICES": str(ranks),
        "WORLD_SIZE": str(ranks),
        **shared,
    }
    given = {**shared, **{name: value for own in (settings or {}).values() for name, value in own.items()}}
    server = None if any(map(read_early, given)) else _server(tuple(sorted({**inherited, **early}.items())))
    start = time.monotonic()
    running: list[Fork | _Interpreter] = []
    code = textwrap.dedent(code)
    for rank in range(ranks):
        environment = {**common, "RANK": str(rank), **(settings or {}).get(rank, {})}
        running.append(
            server.start("hide_torch()\n" + code, environment, os.getcwd())
            if server
            else _Interpreter(code, environment)
        )
    ended = []
    for process in running:
        done = process.wait(start + timeout - time.monotonic())
        ended.append(Ended(done.returncode, done.stdout, done.stderr, time.monotonic() - start))
    return ended


@functools.cache
def _server(environment: tuple[tuple[str, str], ...]) -> ForkServer:
    server = ForkServer(path=(str(ROOT),), environment=dict(environment))
    atexit.register(server.close)
    return server


class _Interpreter:
    """A new interpreter, for variables that would be read before the code of a fork runs."""

    def __init__(self, code: str, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait(self, timeout: float) -> subprocess.CompletedProcess[str]:
        try:
            out, err = self._process.communicate(timeout=max(0, timeout))
        except subprocess.TimeoutExpired:
            self._process.kill()
            out, err = self._process.communicate()
        return subprocess.CompletedProcess(self._process.args, self._process.returncode, out, err)
