# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Runs rounds of random work, measures the process after each, and reports violations."""

from __future__ import annotations

import random
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch

from tests.soak import meters
from tests.soak.sharing import Echo

Workload = Callable[[random.Random, str, Echo], None]

WORK_PER_ROUND = 4
STREAMS_PER_POOL = 32
NARRATION_S = 60.0
MOST_VIOLATIONS = 20


@dataclass
class Report:
    """The report of a run. Sizes are in bytes; lists are by device."""

    seed: int
    mode: str
    seconds: float = 0.0
    rounds: int = 0
    warm_up_rounds: int = 0
    first_round: int = 0
    workloads: Counter = field(default_factory=Counter)
    out_of_memory: int = 0
    peak_allocated: list[int] = field(default_factory=list)
    peak_reserved: list[int] = field(default_factory=list)
    peak_rss: int = 0
    at_rest_first: dict = field(default_factory=dict)
    at_rest_last: dict = field(default_factory=dict)
    growth: dict = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)

    def as_dict(self) -> dict:
        return {
            **vars(self),
            "workloads": dict(sorted(self.workloads.items())),
            "minutes": round(self.seconds / 60, 2),
        }

    def text(self) -> str:
        work = ", ".join(f"{name} {count}" for name, count in sorted(self.workloads.items()))
        lines = [
            f"{self.rounds} rounds in {self.seconds / 60:.1f} min, mode {self.mode}, seed {self.seed}",
            f"work: {work}",
            f"peak: allocated {_mib(self.peak_allocated)}, reserved {_mib(self.peak_reserved)}, "
            f"host {_mib([self.peak_rss])} MiB",
        ]
        if self.growth:
            lines.append("grew after warm-up: " + ", ".join(f"{k} {v:+.0f}" for k, v in self.growth.items()))
        lines += [f"VIOLATION {line}" for line in self.violations] or ["nothing grew, nothing failed"]
        return "\n".join(lines)


def _mib(sizes: list[int]) -> str:
    return "/".join(f"{size / 2**20:.0f}" for size in sizes)


class Soak:
    """Runs workloads at random until the time is over.

    Args:
        workloads: name to function `work(random, device, echo)`; it raises when a result is wrong.
        seed: determines the work of a round, together with the round's number.
        first_round: the number of the first round, to repeat one that failed.
        narrate: is called with a line of progress about once a minute.
        patience: seconds in which other processes and threads must release memory after a round.
    """

    def __init__(
        self,
        workloads: Mapping[str, Workload],
        seed: int = 0,
        first_round: int = 0,
        narrate: Callable[[str], None] = lambda line: None,
        patience: float = 5.0,
    ) -> None:
        self._workloads = dict(workloads)
        self._narrate = narrate
        self._meter = meters.Meter(patience)
        self._echo = Echo()
        self._devices = torch.musa.device_count()
        self._readings: list[meters.Reading] = []
        self._report = Report(seed=seed, mode=self._meter.mode, first_round=first_round)

    def run(self, seconds: float, rounds: int | None = None) -> Report:
        """Runs rounds for `seconds`, or at most `rounds` of them. Exceptions of workloads are only
        reported."""
        report = self._report
        self._warm_up()
        baseline = self._meter.read()
        start = spoken = time.monotonic()
        report.at_rest_first = baseline.as_dict()
        while time.monotonic() - start < seconds and (rounds is None or report.rounds < rounds):
            number = report.first_round + report.rounds
            self._round(number)
            reading = self._meter.read(baseline)
            report.violations += [f"round {number}: {line}" for line in meters.differences(reading, baseline)]
            self._readings.append(reading)
            report.peak_rss = max(report.peak_rss, reading.rss)
            report.rounds += 1
            if time.monotonic() - spoken > NARRATION_S:
                spoken = time.monotonic()
                self._narrate(
                    f"{(spoken - start) / 60:5.1f} min, round {number}, host {reading.rss / 2**20:.0f} MiB, "
                    f"{reading.events} events, {len(report.violations)} violations"
                )
            if len(report.violations) >= MOST_VIOLATIONS:
                report.violations.append("ended early: one cause after another")
                break
        self._echo.close()
        report.at_rest_last = self._meter.read(baseline).as_dict()
        settled = self._readings[len(self._readings) // 5 :]
        report.warm_up_rounds = len(self._readings) - len(settled)
        report.growth = meters.growth(settled)
        report.violations += meters.trends(settled)
        report.seconds = round(time.monotonic() - start, 1)
        return report

    def _warm_up(self) -> None:
        # Streams are created once and never destroyed: with full pools, any further one is a leak.
        for index in range(self._devices):
            least, greatest = torch.musa.Stream.priority_range()
            for priority in range(greatest, least + 1):
                for _ in range(STREAMS_PER_POOL):
                    torch.musa.Stream(index, priority=priority).query()
        # Libraries are loaded, thread pools start and kernels allocate their work space.
        for name in self._workloads:
            for index in range(self._devices):
                self._work(name, random.Random(f"warm-up {name}"), f"musa:{index}", "warm-up")

    def _round(self, number: int) -> None:
        for index in range(self._devices):
            torch.accelerator.reset_peak_memory_stats(index)
        chance = random.Random(f"{self._report.seed}/{number}")
        torch.manual_seed(chance.randrange(2**31))
        for _ in range(WORK_PER_ROUND):
            name = chance.choice(sorted(self._workloads))
            device = f"musa:{chance.randrange(self._devices)}"
            self._work(name, chance, device, f"round {number}")
            if chance.random() < 0.2:
                torch.musa.empty_cache()
        for values, ask in (
            ("peak_allocated", torch.musa.max_memory_allocated),
            ("peak_reserved", torch.musa.max_memory_reserved),
        ):
            before = getattr(self._report, values) or [0] * self._devices
            setattr(self._report, values, [max(old, ask(i)) for i, old in enumerate(before)])

    def _work(self, name: str, chance: random.Random, device: str, when: str) -> None:
        self._report.workloads[name] += 1
        before = torch.musa.current_device()
        try:
            with torch.musa.device(device):
                self._workloads[name](chance, device, self._echo)
        except Exception as error:  # noqa: BLE001 - the report has every exception
            last = traceback.extract_tb(error.__traceback__)[-1]
            self._report.violations.append(
                f"{when}: {name} on {device}: {type(error).__name__}: {error} "
                f"({last.name}, line {last.lineno})"
            )
            traceback.clear_frames(error.__traceback__)
        if torch.musa.current_device() != before:
            self._report.violations.append(f"{when}: {name} left the process on another device")
            torch.musa.set_device(before)
