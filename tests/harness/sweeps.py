# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Which calls of the SDK a fault sweep lets fail, one after another."""

from __future__ import annotations

import os

from .device import EXECUTION_MODE

COMPLETE = "MUSA_TESTS_COMPLETE"  # set by --full, for the processes that tests start as well
_MODES = ("inline", "async", "lazy")


def calls_to_fail(most: int, mode: str = EXECUTION_MODE) -> range:
    """Numbers of calls, from 1, below `most`. A sweep ends at the first that its scenario does not reach.

    With --full, each call. Otherwise every third, of which another in each execution mode: the legs of a test
    run that differ in the mode alone together take them all.
    """
    if os.environ.get(COMPLETE) == "1":
        return range(1, most)
    return range(1 + _MODES.index(mode), most, len(_MODES))
