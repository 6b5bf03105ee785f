# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Starts and stops an attached profiling tool from a program (`torch.musa.profiler`).

For profiles inside the program, use `torch.profiler`::

    with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.MUSA]) as prof:
        step()
    print(prof.key_averages().table(sort_by="self_musa_time_total"))
"""

import contextlib

from . import _load
from .initialization import lazy_init

__all__ = ["is_available", "profile", "start", "stop", "why_unavailable"]


def start():
    """Start the collection of the SDK's profiling tool that this program runs under.

    Has no effect without such a tool.

    Raises:
        torch.AcceleratorError: the SDK refuses.
    """
    lazy_init()
    _load.extension().profiler_start()


def stop():
    """Stop the collection of :func:`start`.

    Raises:
        torch.AcceleratorError: the SDK refuses.
    """
    lazy_init()
    _load.extension().profiler_stop()


@contextlib.contextmanager
def profile():
    """Collect during a `with` block: only the device work of the block, none from before."""
    from .device import synchronize

    synchronize()
    start()
    try:
        yield
        synchronize()
    finally:
        stop()


def is_available():
    """Whether `torch.profiler` can record the device's activity. Does not use the device."""
    return why_unavailable() is None


def why_unavailable():
    """Why `torch.profiler` cannot record the device's activity, with the fix; None if it can.

    The warning of such a profile has the same text.
    """
    result = _load.load()
    if result.error is not None:
        return result.reason
    return result.extension.profiler_problem() or None
