# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Sends random requests to `vllm serve` for a long time, and checks that its processes keep their size.

    python soak.py --minutes 30

The exit status is 0 if every request got the answer that it should get, and neither memory nor descriptors
nor threads of the server's processes grew. The last line of the output is the result as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "serving"))

ARGUMENTS = ["--dtype=float32", "--max-model-len=256", "--max-num-seqs=8", "--kv-cache-memory-bytes=16777216"]
FEWEST_READINGS = 6


class Reading(NamedTuple):
    """The server's processes together, when no request is in work."""

    memory: int  # bytes that only one process has written
    descriptors: int
    threads: int


# Allowed growth of the median between the first and the last third. The C library keeps freed memory, and a
# client's connection may still be closing.
SLACK = Reading(memory=32 << 20, descriptors=4, threads=2)


def growth(readings: Sequence[Reading]) -> dict[str, float]:
    """Returns the last third's median minus the first third's.

    Raises:
        ValueError: there are too few readings.
    """
    if len(readings) < FEWEST_READINGS:
        raise ValueError(f"{len(readings)} readings say nothing about growth; {FEWEST_READINGS} are needed.")
    third = len(readings) // 3
    parts = readings[:third], readings[-third:]
    first, last = (
        {name: statistics.median(getattr(r, name) for r in part) for name in SLACK._fields} for part in parts
    )
    return {name: last[name] - first[name] for name in SLACK._fields}


def violations(grown: dict[str, float]) -> list[str]:
    """Returns a line for each resource that grew by more than allowed."""
    return [
        f"{name} grew by {grown[name]:,.0f}" for name in SLACK._fields if grown[name] > getattr(SLACK, name)
    ]


def read(processes: Sequence) -> Reading:
    """Returns the sum over psutil's processes."""
    memory = 0
    for process in processes:
        rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
        memory += 1024 * sum(
            int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Private_Dirty")
        )
    return Reading(memory, sum(p.num_fds() for p in processes), sum(p.num_threads() for p in processes))


def main() -> int:
    import models
    import psutil
    import serve

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    chosen = random.Random(arguments.seed)
    answers: Counter[str] = Counter()
    expected: Counter[str] = Counter()
    readings: list[Reading] = []
    with tempfile.TemporaryDirectory() as folder:
        models.write("llama", Path(folder))
        with serve.server(folder, ARGUMENTS) as address:
            server = next(process for process in psutil.Process().children() if "serve" in process.cmdline())
            begin = time.monotonic()
            while time.monotonic() < begin + 60 * arguments.minutes:
                count, at_once = chosen.randint(40, 120), chosen.randint(1, 24)
                answers += asyncio.run(serve.load(address, count, at_once))
                expected += serve.expected(count)
                readings.append(read([server, *server.children(recursive=True)]))
                print(
                    f"{time.monotonic() - begin:5.0f} s  {sum(answers.values()):,} answers  {readings[-1]}",
                    flush=True,
                )
    # The first rounds fill caches of torch and of the C library.
    grown = growth(readings[len(readings) // 10 :])
    wrong = violations(grown) + [f"answers: {answers}, expected: {expected}"] * (answers != expected)
    print(json.dumps({"answers": answers, "rounds": len(readings), "growth": grown, "violations": wrong}))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
