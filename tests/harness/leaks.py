# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Does anything that a test allocated outlive it?"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PATIENCE = 1.0  # seconds
# What the driver may take for itself meanwhile, for a stream or an event; a segment is at least 2 MiB.
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


def bytes_beside_the_cache() -> dict[int, int]:
    """Bytes that the driver has given away and the caching allocator does not hold, by device."""
    module = _initialized_module()
    if module is None:
        return {}
    result = {}
    for index in range(module.device_count()):
        free, total = module.mem_get_info(index)
        result[index] = total - free - module.memory_reserved(index)
    return result


def _grown(before: dict[int, int], now: dict[int, int], by: int = 0) -> dict[int, int]:
    return {
        index: size - before.get(index, 0) for index, size in now.items() if size > before.get(index, 0) + by
    }


def _leaks(allocated: dict[int, int], beside: dict[int, int]) -> list[str]:
    found = []
    if grown := _grown(allocated, allocated_bytes()):
        found.append(f"bytes still allocated, by device: {grown}")
    # A device that the test was the first to use has no figure from before.
    now = {index: size for index, size in bytes_beside_the_cache().items() if index in beside}
    if grown := _grown(beside, now, _DRIVERS_OWN):
        found.append(f"bytes still taken of the driver beside the caching allocator, by device: {grown}")
    return found


@contextmanager
def no_leak(unless: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Raise Leak when device memory allocated inside is not released at the end, unless told otherwise."""
    allocated, beside = allocated_bytes(), bytes_beside_the_cache()
    yield
    if unless() or not _leaks(allocated, beside):
        return
    # Cycles, such as the one between an exception and its traceback, are garbage and no leak. And autograd's
    # threads drop their last references a moment after backward() has returned.
    gc.collect()
    deadline = time.monotonic() + _PATIENCE
    while found := _leaks(allocated, beside):
        if time.monotonic() > deadline:
            raise Leak("; ".join(found))
        time.sleep(0.01)
