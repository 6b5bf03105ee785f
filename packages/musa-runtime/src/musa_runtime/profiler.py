# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Switching an attached profiling tool on and off, from a program (`torch.musa.profiler`).

For profiles inside the program, `torch.profiler` is the tool::

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

    Without such a tool nothing happens.

    Raises:
        torch.AcceleratorError: the SDK refuses.
    """
    lazy_init()
    _load.extension().profiler_start()


def stop():
    """Stop what :func:`start` started.

    Raises:
        torch.AcceleratorError: the SDK refuses.
    """
    lazy_init()
    _load.extension().profiler_stop()


@contextlib.contextmanager
def profile():
    """Collect for the duration of a `with` block: what it asks of the device, and nothing from before."""
    from .device import synchronize

    synchronize()
    start()
    try:
        yield
        synchronize()
    finally:
        stop()


def is_available():
    """Whether `torch.profiler` can record the device's activity. Does not touch the device."""
    return why_unavailable() is None


def why_unavailable():
    """What keeps `torch.profiler` from recording the device's activity, with the cure; None for nothing.

    The same text is the warning that such a profile gives.
    """
    result = _load.load()
    if result.error is not None:
        return result.reason
    return result.extension.profiler_problem() or None
