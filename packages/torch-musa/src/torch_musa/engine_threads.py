# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A clean exit for programs that end right after a backward pass.

The first `backward()` of a process, even for CPU tensors, starts one engine thread per device. Each takes the
GIL once before it waits for work. If a thread first runs while the interpreter shuts down, Python ends it in
the middle of C++ code that must not be unwound, and the process aborts ("terminate called without an active
exception"). This happens with several devices on a busy machine; waiting briefly for the threads at exit
avoids it.
"""

from __future__ import annotations

import atexit
import os
import time

_TASKS = "/proc/self/task"
_NAME_PREFIX = "pt_autograd"


def _running() -> bool:
    """Whether an engine thread is about to take the GIL or holds it."""
    try:
        tasks = os.listdir(_TASKS)
    except OSError:
        return False  # no file descriptor is left
    for task in tasks:
        try:
            with open(f"{_TASKS}/{task}/stat", encoding="utf-8") as file:
                stat = file.read()
        except OSError:
            continue  # the thread has ended in the meantime
        # "<pid> (<name>) <state> ...": the name may contain any character and ends at the last
        # parenthesis.
        name, _, rest = stat.partition("(")[2].rpartition(")")
        if name.startswith(_NAME_PREFIX) and rest.strip()[0] != "S":
            return True
    return False


def settle(timeout: float = 2.0) -> None:
    """Waits with the GIL released until all engine threads sleep, for at most `timeout` seconds."""
    deadline = time.monotonic() + timeout
    quiet = 0
    # Twice in a row, because a thread may appear asleep while it waits for the GIL, which is held
    # here between sleeps.
    while quiet < 2 and time.monotonic() < deadline:
        time.sleep(0.001)
        quiet = 0 if _running() else quiet + 1


def register() -> None:
    """Waits for the threads at exit, if the system exposes their state."""
    if os.path.isdir(_TASKS):
        atexit.register(settle)
