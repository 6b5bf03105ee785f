# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Detects device memory and graphs that a test allocated and did not release."""

from __future__ import annotations

import ctypes
import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PATIENCE = 1.0  # seconds
# Memory that a driver may allocate for a stream or an event. A segment is at least 2 MiB.
_DRIVERS_OWN = 1 << 20


class Leak(AssertionError):
    """Device memory that a test allocated is still allocated after it."""


def _initialized_module():
    module = getattr(sys.modules.get("torch"), "musa", None)
    return module if module is not None and module.is_initialized() else None


def allocated_bytes() -> dict[int, int]:
    """Bytes of device memory that tensors hold, by device; empty before the device was first used."""
    module = _initialized_module()
    if module is None:
        return {}
    return {index: module.memory_allocated(index) for index in range(module.device_count())}


def _sdk_counters() -> ctypes.CDLL | None:
    """The loaded SDK if it counts the resources of this process, as the emulator does (musa_emulator.h)."""
    from .emulator import loaded_sdk

    sdk = loaded_sdk()
    if not hasattr(sdk, "musaEmulatorLiveBytes"):
        return None
    for name in ("LiveBytes", "LiveGraphs"):
        getattr(sdk, f"musaEmulator{name}").restype = ctypes.c_size_t
    return sdk


def _bytes_in_use(index: int) -> int:
    """Bytes of a device that this process has allocated through the SDK.

    An SDK without such counters reports only the free memory of the device, which other processes change too.
    """
    counters = _sdk_counters()
    if counters is not None:
        return counters.musaEmulatorLiveBytes(index)
    free, total = _initialized_module().mem_get_info(index)
    return total - free


def bytes_beside_the_cache() -> dict[int, int]:
    """Bytes of device memory that are allocated and that the caching allocator does not hold, by device."""
    module = _initialized_module()
    if module is None:
        return {}
    return {
        index: _bytes_in_use(index) - module.memory_reserved(index) for index in range(module.device_count())
    }


def live_graphs() -> int:
    """Graphs and executable graphs of this process, 0 if the SDK does not count them."""
    counters = _sdk_counters() if _initialized_module() is not None else None
    return counters.musaEmulatorLiveGraphs() if counters is not None else 0


def _grown(before: dict[int, int], now: dict[int, int], by: int = 0) -> dict[int, int]:
    return {
        index: size - before.get(index, 0) for index, size in now.items() if size > before.get(index, 0) + by
    }


def _leaks(allocated: dict[int, int], beside: dict[int, int], graphs: int) -> list[str]:
    found = []
    if grown := _grown(allocated, allocated_bytes()):
        found.append(f"bytes still allocated, by device: {grown}")
    # There is no earlier figure for a device whose first user was this test.
    now = {index: size for index, size in bytes_beside_the_cache().items() if index in beside}
    slack = 0 if now and _sdk_counters() is not None else _DRIVERS_OWN
    if grown := _grown(beside, now, slack):
        found.append(f"bytes still allocated beside the caching allocator, by device: {grown}")
    if (grown := live_graphs() - graphs) > 0:
        found.append(f"graphs that were not destroyed: {grown}")
    return found


@contextmanager
def no_leak(unless: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Raise Leak if device memory allocated inside is not released at the end and `unless` returns False."""
    before = allocated_bytes(), bytes_beside_the_cache(), live_graphs()
    yield
    if unless() or not _leaks(*before):
        return
    # Cycles, such as the one between an exception and its traceback, are garbage and no leak. Autograd's
    # threads release their last references shortly after backward() has returned.
    gc.collect()
    deadline = time.monotonic() + _PATIENCE
    while found := _leaks(*before):
        if time.monotonic() > deadline:
            raise Leak("; ".join(found))
        time.sleep(0.01)
