# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The caching allocator under threads: do they get more done together than one does alone?

    python -m benchmarks.allocator_threads

Each thread allocates and frees without pause. Small blocks rest with the thread that freed them, so threads
meet neither at a lock nor in a line of memory, and throughput grows up to the number of cores. Large ones go
through the one lock of the device: what can be hoped for there is that it costs no more than taking turns. A
convoy, in which every handover puts a thread to sleep, does far less.
"""

import argparse
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass

THREADS = (1, 2, 4, 8)


@dataclass
class Figure:
    """One row: `ns` for a pair of allocate and free on each thread, and what all threads do together."""

    own_streams: bool
    threads: int
    ns: float
    against_one: float  # throughput of all threads over that of one alone

    @property
    def throughput(self) -> float:
        """Million pairs a second."""
        return self.threads / self.ns * 1e3


def device_pair_ns() -> Callable[[int, int, int, bool], float]:
    """``f(nbytes, iterations, threads, own_streams)``: nanoseconds per pair and thread, looped in C++."""
    from musa_runtime import _C

    return _C.bench_allocator_threads


def measure(pair_ns, nbytes=4096, iterations=10_000_000, rounds=3) -> Iterator[Figure]:
    """Medians, for threads on streams of their own and for threads on one stream."""
    for own in (True, False):
        alone = None
        for threads in THREADS:
            ns = statistics.median(pair_ns(nbytes, iterations, threads, own) for _ in range(rounds))
            alone = ns if alone is None else alone
            yield Figure(own, threads, ns, threads * alone / ns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", type=int, default=4096)
    parser.add_argument("--iterations", type=int, default=10_000_000)
    options = parser.parse_args()

    import torch

    torch.musa.init()
    print(f"{'streams':<8}{'threads':>8}{'ns/pair/thread':>16}{'Mpairs/s':>10}{'of one thread':>15}")
    for row in measure(device_pair_ns(), options.bytes, options.iterations):
        name = "own" if row.own_streams else "one"
        ratio = f"{row.against_one:.2f}x"
        print(f"{name:<8}{row.threads:>8}{row.ns:>16.1f}{row.throughput:>10.2f}{ratio:>15}")


if __name__ == "__main__":
    main()
