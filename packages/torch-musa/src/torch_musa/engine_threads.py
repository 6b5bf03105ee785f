# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A clean exit for programs that end right after a backward pass.

The first `backward()` of a process, of CPU tensors too, starts one engine thread per device, and each
takes the GIL once before it waits for work. A thread that first gets to run while the interpreter shuts
down is ended by Python in the middle of C++ code that must not be unwound, and the process aborts
("terminate called without an active exception"). A program with several devices and a busy machine meets
this; waiting a moment for the threads at exit avoids it.
"""

import atexit
import os
import time

_TASKS = "/proc/self/task"
_NAME_PREFIX = "pt_autograd"


def _running():
    """Whether some engine thread is on its way to the GIL or through it."""
    for task in os.listdir(_TASKS):
        try:
            with open(f"{_TASKS}/{task}/stat", encoding="utf-8") as file:
                stat = file.read()
        except OSError:
            continue  # the thread has ended since it was listed
        # "<pid> (<name>) <state> ...": the name may hold anything but ends at the last parenthesis.
        name, _, rest = stat.partition("(")[2].rpartition(")")
        if name.startswith(_NAME_PREFIX) and rest.strip()[0] != "S":
            return True
    return False


def settle(timeout=2.0):
    """Wait, with the GIL released, until every engine thread sleeps; at most `timeout` seconds."""
    deadline = time.monotonic() + timeout
    quiet = 0
    # Twice in a row: a thread may look asleep while it waits for the GIL, which is held here between sleeps.
    while quiet < 2 and time.monotonic() < deadline:
        time.sleep(0.001)
        quiet = 0 if _running() else quiet + 1


def register():
    """Settle the threads at exit, where the system tells their state."""
    if os.path.isdir(_TASKS):
        atexit.register(settle)
