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


class Leak(AssertionError):
    """Device memory that a test allocated is still allocated after it."""


def allocated_bytes() -> dict[int, int]:
    """Bytes of device memory that tensors hold, by device; empty before the device was first used."""
    torch = sys.modules.get("torch")
    module = getattr(torch, "musa", None)
    if module is None or not module.is_initialized():
        return {}
    stats = {index: torch.accelerator.memory_stats(index) for index in range(module.device_count())}
    return {index: stat.get("allocated_bytes.all.current", 0) for index, stat in stats.items()}


def _grown(before: dict[int, int], now: dict[int, int]) -> dict[int, int]:
    return {index: size - before.get(index, 0) for index, size in now.items() if size > before.get(index, 0)}


@contextmanager
def no_leak(unless: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Raise Leak when device memory allocated inside is not released at the end, unless told otherwise."""
    before = allocated_bytes()
    yield
    if unless() or not _grown(before, allocated_bytes()):
        return
    # Cycles, such as the one between an exception and its traceback, are garbage and no leak. And autograd's
    # threads drop their last references a moment after backward() has returned.
    gc.collect()
    deadline = time.monotonic() + _PATIENCE
    while leaked := _grown(before, allocated_bytes()):
        if time.monotonic() > deadline:
            raise Leak(f"bytes still allocated, by device: {leaked}")
        time.sleep(0.01)
