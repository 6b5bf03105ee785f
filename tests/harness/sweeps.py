# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Selects the calls of the SDK that a fault sweep lets fail, one after another."""

from __future__ import annotations

import os

COMPLETE = "MUSA_TESTS_COMPLETE"  # set by --full, for the processes that tests start as well
# Settings among which the calls are divided; each is a leg of `tools/dev.py test`.
_SHARES = {("inline", ""): 0, ("async", ""): 1, ("inline", "strict"): 2}


def calls_to_fail(most: int, mode: str | None = None, memory: str | None = None) -> range:
    """Numbers of calls from 1, below `most`. A sweep ends at the first call that its scenario does not reach.

    With --full, each call. Otherwise every third one, with another start in each of the legs inline, async,
    and inline in strict memory, which together take all calls.
    """
    if os.environ.get(COMPLETE) == "1":
        return range(1, most)
    # Imported here because it imports torch, which some suites do not use.
    from .device import EXECUTION_MODE, MEMORY_MODE

    mode = EXECUTION_MODE if mode is None else mode
    memory = MEMORY_MODE if memory is None else memory
    return range(1 + _SHARES.get((mode, memory), 0), most, len(_SHARES))
