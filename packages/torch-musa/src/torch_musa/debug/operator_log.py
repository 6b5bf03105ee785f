# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A log of operators: shapes, dtypes, provider, time, and copies between host and device."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from musa_runtime import ops

from .call import DEVICE
from .observer import Observer
from .timeline import Timeline

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from .call import OperatorCall
    from .timeline import Row

_READS = ("_local_scalar_dense", "equal")  # they return a number or a bool to the host


class OperatorLog(Observer):
    """The observer of `log_operators`.

    Attributes:
        timeline (Timeline): its `rows` are the log.
    """

    def __init__(self, device_only: bool = True) -> None:
        self._device_only = device_only
        self._fallbacks: dict[int, int] = {}
        self.timeline = Timeline()

    @property
    def rows(self) -> list[Row]:
        """The calls as a list of `Row`, in the order of completion."""
        return self.timeline.rows

    def before(self, call: OperatorCall) -> None:
        if call.on_device:
            self._fallbacks[call.index] = _fallback_bytes(call.name)

    def after(self, call: OperatorCall) -> None:
        before = self._fallbacks.pop(call.index, 0)
        if not call.on_device:
            if not self._device_only:
                self.timeline.add(call, "host")
            return
        if call.error is not None:
            self.timeline.add(
                call, "", f"it raised {type(call.error).__name__}: {call.error}".splitlines()[0]
            )
            return
        copied = _fallback_bytes(call.name) - before
        note = f"{copied} bytes were copied to host memory and back, for the CPU's kernel" if copied else ""
        self.timeline.add(call, "", note, copied=_explicit_copies(call))

    def table(self, limit: int | None = 30) -> str:
        """Returns operators with calls, time, provider and copies as text, longest time first.

        Args:
            limit (int): maximum number of rows; None for all.
        """
        return "\n".join(
            f"{total.seconds * 1e3:10.3f} ms {total.calls:7} calls {total.to_device:12} B to device "
            f"{total.to_host:12} B to host  {total.operator}  {total.provider}"
            for total in totals(self.rows)[:limit]
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the rows as JSON lines, with the field names of `Row`."""
        with open(path, "w", encoding="utf-8") as file:
            for row in self.rows:
                print(json.dumps({**row._asdict(), "error": None}), file=file)


class Total:
    """Totals over the calls of an operator that were served by one provider."""

    def __init__(self, operator: str, provider: str) -> None:
        self.operator, self.provider = operator, provider
        self.calls, self.seconds, self.to_device, self.to_host = 0, 0.0, 0, 0

    def add(self, row: Row) -> None:
        self.calls += 1
        self.seconds += row.seconds
        self.to_device += row.copied[0]
        self.to_host += row.copied[1]


def totals(rows: Iterable[Row]) -> list[Total]:
    """Returns a `Total` for each operator and provider, longest time first."""
    sums: dict[tuple[str, str], Total] = {}
    for row in rows:
        key = row.operator, row.provider
        if key not in sums:
            sums[key] = Total(*key)
        sums[key].add(row)
    return sorted(sums.values(), key=lambda total: -total.seconds)


def _explicit_copies(call: OperatorCall) -> tuple[int, int]:
    """Returns the bytes that the call copied to the device and to the host."""
    if call.base_name in _READS:
        size = call.inputs[0][1].element_size() if call.base_name == _READS[0] else 1
        return 0, size
    if call.base_name == "copy_":
        target, source = call.args[0], call.args[1]
    elif call.base_name == "_to_copy":
        target, source = call.result, call.args[0]
    else:
        return 0, 0
    places = source.device.type, target.device.type
    size = source.numel() * source.element_size()
    if places == ("cpu", DEVICE):
        return size, 0
    return (0, size) if places == (DEVICE, "cpu") else (0, 0)


def _fallback_bytes(name: str) -> int:
    """Returns the bytes that the operator has copied for CPU kernels since the process started."""
    return sum(row["bytes"] for row in ops.fallback_report() if row["op"] == name)


def log_operators(*, device_only: bool = True) -> OperatorLog:
    """Logs the operators of a `with` block, in forward and backward passes.

    The device is idle before and after each operator, so times are for single operators. Use torch.profiler
    for times with overlap of host and device.

    Args:
        device_only (bool): skip operators that do not involve the musa device.

    Returns:
        OperatorLog: a context manager with the results.
    """
    return OperatorLog(device_only)
