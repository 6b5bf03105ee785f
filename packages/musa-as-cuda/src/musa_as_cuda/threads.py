# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Activates the mode on threads that a program starts, because torch's modes are per thread.

`threading.setprofile` sets a function that each new thread calls first. That function enters the mode and
removes itself, so it has no cost afterwards.
"""

import sys
import threading

from torch.overrides import _pop_mode, _push_mode

from .mode import AsCuda, is_active

_local = threading.local()
_before = None


class _Leaves:
    """Leaves the mode when the thread ends, because torch's per-thread state must not refer to it then."""

    def __del__(self):
        if is_active():
            _pop_mode()


def follow():
    """Makes threads that start from now on enter the mode."""
    global _before
    _before = threading.getprofile()
    threading.setprofile(_first_event)


def unfollow():
    """Stops new threads from entering the mode."""
    if threading.getprofile() is _first_event:
        threading.setprofile(_before)


def _first_event(frame, event, argument):
    sys.setprofile(_before)
    if threading.getprofile() is _first_event and threading.current_thread() is not threading.main_thread():
        _push_mode(AsCuda())
        _local.leaves = _Leaves()
    if _before is not None:
        _before(frame, event, argument)
