# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Starts and stops an attached profiling tool from a program (`torch.musa.profiler`).

For profiles inside the program, use `torch.profiler`::

    with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.MUSA]) as prof:
        step()
    print(prof.key_averages().table(sort_by="self_device_time_total"))
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from . import _load
from .initialization import lazy_init

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["is_available", "profile", "start", "stop", "why_unavailable"]


def start() -> None:
    """Start the collection of the SDK's profiling tool that this program runs under.

    Has no effect without such a tool.

    Raises:
        torch.AcceleratorError: the SDK refuses.
    """
    lazy_init()
    _load.extension().profiler_start()


def stop() -> None:
    """Stop the collection of :func:`start`.

    Raises:
        torch.AcceleratorError: the SDK refuses.
    """
    lazy_init()
    _load.extension().profiler_stop()


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """Collect during a `with` block: only the device work of the block, none from before."""
    from .device import synchronize

    synchronize()
    start()
    try:
        yield
        synchronize()
    finally:
        stop()


def is_available() -> bool:
    """Whether `torch.profiler` can record the device's activity. Does not use the device."""
    return why_unavailable() is None


def why_unavailable() -> str | None:
    """Why `torch.profiler` cannot record the device's activity, with the fix; None if it can.

    The warning of such a profile has the same text.
    """
    result = _load.load()
    if result.error is not None:
        return result.reason
    return result.extension.profiler_problem() or None
