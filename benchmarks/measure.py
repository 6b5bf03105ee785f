# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Measures two alternatives in one run, and checks the result against its bar."""

import gc
import multiprocessing
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import repeat

import torch


@dataclass(frozen=True)
class Effort:
    """The extent of a measurement: ``rounds`` pairs of samples, each of at least ``seconds``.

    ``clock`` is a function of the module ``time``. "process_time" ignores time in which other programs use
    the processor: suitable for busy machines, and for work that does not wait.
    """

    rounds: int
    seconds: float
    clock: str = "perf_counter"


@dataclass(frozen=True)
class Row:
    """One line of the report.

    ``value`` and ``baseline`` are medians in ``unit``. Compared with ``bar`` is their ratio if ``by`` is
    "ratio" (or ``ratio`` if both were sampled in pairs), their difference if it is "difference", otherwise
    ``value`` itself; a "count" may be 0.
    """

    group: str
    name: str
    value: float
    baseline: float
    unit: str
    bar: float
    by: str = "ratio"
    ratio: float | None = None
    spread: tuple[float, float] | None = None  # quartiles of the ratio over the rounds
    served: str = ""  # providers of the operators behind ``value``

    @property
    def judged(self) -> float:
        if self.by == "ratio":
            return self.value / self.baseline if self.ratio is None else self.ratio
        return self.value - self.baseline if self.by == "difference" else self.value

    @property
    def met(self) -> bool:
        return self.judged <= self.bar

    def as_dict(self) -> dict:
        return {**asdict(self), "judged": self.judged, "met": self.met}


def synchronize(device: torch.device) -> None:
    torch.get_device_module(device).synchronize()


def sample(run: Callable[[], object], device: torch.device, count: int, clock: str = Effort.clock) -> float:
    """Returns seconds per call over ``count`` calls, including the final device synchronization."""
    now = getattr(time, clock)
    synchronize(device)
    start = now()
    for _ in repeat(None, count):
        run()
    synchronize(device)
    return (now() - start) / count


def calibrate(
    runs: list[tuple[Callable[[], object], torch.device]], seconds: float, clock: str = Effort.clock
) -> int:
    """Returns the number of calls that takes ``seconds`` on the faster side; used for both sides."""
    count = 1
    while True:
        fastest = min(sample(run, device, count, clock) for run, device in runs) * count
        if fastest >= seconds:
            return count
        count = max(count + 1, min(count * 10, int(1.2 * count * seconds / max(fastest, 1e-9))))


@dataclass(frozen=True)
class Pair:
    """Medians in seconds of both sides; median and quartiles of the ratio of adjacent samples.

    Adjacent samples are taken under the same conditions. If the machine's speed drifts during a run, the
    ratio of the medians would compare samples taken minutes apart.
    """

    value: float
    baseline: float
    ratio: float
    spread: tuple[float, float]


def pair_of(values: list[float], baselines: list[float]) -> Pair:
    """Returns the pair of two series of adjacent samples."""
    ratios = [a / b for a, b in zip(values, baselines)]
    quartiles = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else [ratios[0]] * 3
    medians = (statistics.median(samples) for samples in (values, baselines, ratios))
    return Pair(*medians, (quartiles[0], quartiles[2]))


def interleaved(run, device: torch.device, baseline_run, baseline: torch.device, effort: Effort) -> Pair:
    """Samples both sides in alternating order, so that drift of the machine affects both equally."""
    sides = [(run, device), (baseline_run, baseline)]
    for side, place in sides:  # first calls load libraries, fill caches and cause page faults
        sample(side, place, 3)
    count = calibrate(sides, effort.seconds, effort.clock)
    times: tuple[list[float], list[float]] = ([], [])
    gc.collect()
    gc.disable()
    try:
        for index in range(effort.rounds):
            for which in (0, 1) if index % 2 == 0 else (1, 0):
                times[which].append(sample(*sides[which], count, effort.clock))
    finally:
        gc.enable()
    return pair_of(*times)


def in_own_process(function: Callable, *arguments):
    """Calls ``function(*arguments)`` in a fresh process, like a user's script.

    The speed of the CPU side depends on previous work of the process: after a large block was freed, glibc's
    malloc keeps memory that it would otherwise return to the system, causing page faults in each step.
    """
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, torch.set_num_threads, (torch.get_num_threads(),)) as process:
        return process.submit(function, *arguments).result()


def warm_up_for_capture(step: Callable[[], object], module) -> None:
    """Runs `step` three times on a side stream, as torch requires before a capture.

    module: torch.musa or torch.cuda.
    """
    side = module.Stream()
    side.wait_stream(module.current_stream())
    with module.stream(side):
        for _ in range(3):
            step()
    module.current_stream().wait_stream(side)
