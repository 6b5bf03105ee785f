# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Measures a process's device memory, page-locked memory, SDK objects and host memory, and their growth."""

from __future__ import annotations

import ctypes
import gc
import statistics
import time
from dataclasses import asdict, dataclass

import torch

from tests.harness.emulator import Emulator, loaded_sdk


@dataclass(frozen=True)
class Reading:
    """The resources of a process after all work has ended and every cache has been emptied."""

    allocated: tuple[int, ...]  # bytes of tensors, by device
    reserved: tuple[int, ...]  # bytes that the caching allocator keeps, by device
    device_allocations: tuple[int, ...]  # of the SDK, by device
    host_allocations: int
    streams: int
    events: int
    graphs: int
    pending: int
    rss: int  # bytes

    def as_dict(self):
        return asdict(self)


def resident_bytes() -> int:
    """Memory that this process alone has written. Shared memory, such as device memory may be, is not
    counted, nor are pages of libraries, which count as private whenever no other process maps them."""
    with open("/proc/self/smaps_rollup", encoding="utf-8") as file:
        fields = dict(line.split(":", 1) for line in file if ":" in line and "kB" in line)
    return int(fields["Private_Dirty"].split()[0]) * 1024


class Meter:
    """Measures the process's resources. The emulator counts SDK objects exactly; other SDKs report only a
    part.

    Args:
        patience: seconds in which other processes and threads must release their resources.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        torch.musa.init()
        sdk = loaded_sdk()
        self._emulator = Emulator(sdk) if hasattr(sdk, "musaEmulatorLiveEvents") else None
        self._devices = range(torch.musa.device_count())
        self._libc = ctypes.CDLL(None)

    @property
    def mode(self) -> str:
        return self._emulator.mode if self._emulator else "device"

    def settle(self) -> None:
        """Wait for all work and empty every cache."""
        gc.collect()
        for index in self._devices:
            torch.musa.synchronize(index)
        if hasattr(torch.musa, "ipc_collect"):
            torch.musa.ipc_collect()
        torch.musa.empty_cache()
        torch.accelerator.memory.empty_host_cache()
        # Freed memory that the C library keeps would look like growth.
        self._libc.malloc_trim(0)

    def read(self, expected: Reading | None = None) -> Reading:
        """The resources at rest. With `expected`, waits for autograd's threads and for processes that release
        their last references late."""
        deadline = time.monotonic() + self._patience
        while True:
            self.settle()
            reading = self._read()
            late = expected is not None and holdings(reading) != holdings(expected)
            if not late or time.monotonic() > deadline:
                return reading
            time.sleep(0.05)

    def _read(self) -> Reading:
        footprint = self._emulator.footprint(len(self._devices)) if self._emulator else None
        return Reading(
            allocated=tuple(torch.musa.memory_allocated(index) for index in self._devices),
            reserved=tuple(torch.musa.memory_reserved(index) for index in self._devices),
            device_allocations=footprint.device_allocations if footprint else (),
            host_allocations=footprint.host_allocations if footprint else 0,
            streams=footprint.streams if footprint else 0,
            events=footprint.events if footprint else 0,
            graphs=footprint.graphs if footprint else 0,
            pending=self._emulator.pending_operations() if self._emulator else 0,
            rss=resident_bytes(),
        )


# Resources that must be exactly as before after every round.
EXACT = ("allocated", "reserved", "device_allocations", "host_allocations", "streams", "graphs", "pending")


def holdings(reading: Reading) -> tuple:
    return tuple(getattr(reading, name) for name in EXACT)


def differences(reading: Reading, baseline: Reading) -> list[str]:
    """The differences from the baseline, each as a line."""
    return [
        f"{name} is {getattr(reading, name)} after the round, {getattr(baseline, name)} before the first"
        for name in EXACT
        if getattr(reading, name) != getattr(baseline, name)
    ]


# Allowed growth of the median between the first and the last third of a run. The pool of events has as many
# as were ever pending at once. Resident memory varies with the C library's arenas and torch's own caches.
SLACK = {"events": 16, "rss": 24 << 20}
FEWEST_READINGS = 9


def growth(readings: list[Reading]) -> dict[str, float]:
    """Last third's median minus first third's, for resources without an exact baseline; empty if too few."""
    if len(readings) < FEWEST_READINGS:
        return {}
    third = len(readings) // 3
    first, last = readings[:third], readings[-third:]
    return {
        name: statistics.median(getattr(r, name) for r in last)
        - statistics.median(getattr(r, name) for r in first)
        for name in SLACK
    }


def trends(readings: list[Reading]) -> list[str]:
    """The resources that grew by more than allowed, each as a line."""
    return [
        f"{name} grew by {grown:.0f} over {len(readings)} rounds after warm-up (allowed: {SLACK[name]})"
        for name, grown in growth(readings).items()
        if grown > SLACK[name]
    ]
