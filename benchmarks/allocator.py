# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Cache hits of the caching allocator: one allocation and release, against malloc and free of that size."""

import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from .measure import Effort, Row

BAR_NS = 150.0
SIZES = {"512 B": 512, "64 KiB": 64 << 10, "1 MiB": 1 << 20, "64 MiB": 64 << 20}


def device_pair_ns() -> Callable[[int, int], float]:
    """Returns ``f(nbytes, iterations)``: nanoseconds per pair on the musa allocator, looped in C++."""
    from musa_runtime import _C

    return _C.bench_allocator


def compile_malloc(folder: Path) -> Callable[[int, int], float]:
    """The same for the C library's malloc, in a C program, so that Python's overhead is not measured."""
    program = folder / "posix_malloc"
    source = Path(__file__).with_name("posix_malloc.c")
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-o", program, source], check=True)

    def pair_ns(nbytes: int, iterations: int) -> float:
        command = [program, str(nbytes), str(iterations)]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    return pair_ns


def measure(device_pair, malloc_pair, effort: Effort) -> Iterator[Row]:
    for name, nbytes in SIZES.items():
        # About ten milliseconds per sample of hits; malloc maps large blocks on every call, which
        # takes microseconds.
        iterations = max(1000, int(effort.seconds * 5e6))
        device_pair(nbytes, 100)  # the first allocation is a cache miss
        pairs = [
            (device_pair(nbytes, iterations), malloc_pair(nbytes, iterations)) for _ in range(effort.rounds)
        ]
        value, baseline = (statistics.median(side) for side in zip(*pairs))
        yield Row("allocator hit", f"allocate + free {name}", value, baseline, "ns", BAR_NS, by="value")


def measure_all(effort: Effort) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        yield from measure(device_pair_ns(), compile_malloc(Path(folder)), effort)
