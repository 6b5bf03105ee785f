# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The operators of a `with` block in order, for tables and the report."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, NamedTuple

from .call import describe

if TYPE_CHECKING:
    from .call import OperatorCall

CAPACITY = 200_000  # rows; each takes about 1 KiB


class Row(NamedTuple):
    """A call. Times are in seconds, sizes in bytes.

    `verdict` is "same", "rounding", "different", "not compared", "host" for operators that do not involve the
    device, "nonfinite", or "" if nothing was checked; `note` contains the reason. `copied` contains the bytes
    that the call copied from the host to the device and back.
    """

    call: int
    operator: str
    module: str
    phase: str
    thread: int
    start: float
    seconds: float
    provider: str
    arguments: tuple[str, ...]
    verdict: str = ""
    note: str = ""
    error: float = math.nan
    copied: tuple[int, int] = (0, 0)


class Timeline:
    """Rows of calls, up to a capacity.

    Attributes:
        rows (list of Row): the first calls.
        dropped (int): number of calls after the capacity was reached.
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.dropped = 0
        self._lock = threading.Lock()

    def add(
        self,
        call: OperatorCall,
        verdict: str = "",
        note: str = "",
        error: float = math.nan,
        copied: tuple[int, int] = (0, 0),
    ) -> None:
        with self._lock:
            if len(self.rows) >= CAPACITY:
                self.dropped += 1
                return
        arguments = tuple(f"{name}: {describe(value)}" for name, value in call.named_arguments)
        row = Row(
            call.index, call.name, call.module, call.phase, call.thread, call.start, call.seconds,
            call.provider, arguments, verdict, note, error, copied,
        )  # fmt: skip
        with self._lock:
            self.rows.append(row)
