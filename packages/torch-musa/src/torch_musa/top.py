# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`python -m torch_musa top`: devices, processes, and operators of processes with `TORCH_MUSA_TOP=1`."""

from __future__ import annotations

import json
import shutil
import sys
import time

from musa_runtime.errors import MusaError

from . import live_operators, management

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import Any

_OPERATORS = 12  # shown of each process
_REPAINT = "\x1b[H\x1b[J"  # to the upper left corner, and clear from there


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--once", action="store_true", help="print once; the default if the output is no terminal"
    )
    parser.add_argument(
        "--interval", type=_seconds, default=2.0, help="seconds between two repaints; default 2"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, once")


def _seconds(text: str) -> float:
    import argparse

    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.1 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0.1 to 3600")
    return value


def run(options: argparse.Namespace) -> int:
    """Prints until the user interrupts it, or once. Returns the exit status: 1 without any device."""
    reader = Reader()
    state = reader.read()
    if options.json:
        print(json.dumps(state, indent=2))
    elif options.once or not sys.stdout.isatty():
        print(render(state, None, 0.0))
    else:
        _repaint(reader, state, options.interval)
    return int(not state["devices"])


def _repaint(reader: Reader, state: dict[str, Any], interval: float) -> None:
    before, then = None, time.monotonic()
    try:
        while True:
            now = time.monotonic()
            columns, lines = shutil.get_terminal_size()
            text = render(state, before, now - then).splitlines()[: lines - 1]
            print(_REPAINT + "\n".join(line[:columns] for line in text), flush=True)
            time.sleep(interval)
            before, then, state = state, now, reader.read()
    except KeyboardInterrupt:
        print()


class Reader:
    """Reads the present state; the management library is opened once."""

    def __init__(self) -> None:
        self._library: management.Library | None = None

    def read(self) -> dict[str, Any]:
        """Returns `driver`, `devices`, `processes`, `programs`, and `problems`, a list of texts."""
        state: dict[str, Any] = {"driver": None, "devices": [], "processes": [], "problems": []}
        try:
            self._library = self._library or management.Library()
            state["driver"] = self._library.driver()
            state["devices"] = self._library.devices()
            state["processes"] = management.processes()
        except MusaError as error:
            state["problems"].append(str(error))
        state["programs"] = live_operators.query()
        return state


def render(state: dict[str, Any], before: dict[str, Any] | None, seconds: float) -> str:
    """Returns the state as text.

    Args:
        before: the previous state, for the rates of calls; None shows the numbers of calls only.
        seconds: the time between the two.
    """
    parts = [f"torch_musa top   driver {state['driver'] or 'unknown'}   {time.strftime('%Y-%m-%d %H:%M:%S')}"]
    table = [("device", "name", "util", "memory", "temp", "power")]
    for device in state["devices"]:
        table.append(
            (
                str(device["index"]),
                device["name"] or "-",
                _figure(device["utilization"], "%"),
                f"{_mebibytes(device['memory_used'])} / {_mebibytes(device['memory_total'])}",
                _figure(device["temperature"], " C"),
                _figure(None if device["power"] is None else round(device["power"]), " W"),
            )
        )
    parts.append(_columns(table) if state["devices"] else "no devices")
    table = [("pid", "device", "memory", "process")]
    table += [
        (str(row["pid"]), str(row["device"]), _mebibytes(row["memory"]), row["name"])
        for row in state["processes"]
    ]
    if not state["problems"]:
        parts.append(_columns(table) if state["processes"] else "no process uses a device")
    parts += state["problems"]
    earlier = {
        (program["pid"], row["op"], row["provider"]): row["calls"]
        for program in (before or {}).get("programs", ())
        for row in program.get("operators", ())
    }
    parts += [_program(program, earlier, seconds if before else 0.0) for program in state["programs"]]
    if not state["programs"]:
        parts.append(f"no process publishes its operators; start one with {live_operators.VARIABLE}=1")
    return "\n\n".join(parts)


def _program(program: dict[str, Any], earlier: dict[tuple[int, str, str], int], seconds: float) -> str:
    title = f"process {program['pid']}"
    if "problem" in program:
        return f"{title}: {program['problem']}"
    rows = []
    for row in program["operators"]:
        key = (program["pid"], row["op"], row["provider"])
        rate = (row["calls"] - earlier.get(key, 0)) / seconds if seconds else 0.0
        rows.append((rate, row["calls"], row["op"], row["provider"]))
    rows.sort(key=lambda row: (-row[0], -row[1], row[2], row[3]))
    heading = ("operator", "served by", "calls", *(["calls/s"] if seconds else []))
    table = [heading] + [
        (op, provider, str(calls), *([f"{rate:.0f}"] if seconds else []))
        for rate, calls, op, provider in rows[:_OPERATORS]
    ]
    text = f"{title}: {program['command']}\n" + _columns(table, indent="  ")
    hidden = len(rows) - _OPERATORS
    return text + (f"\n  and {hidden} more" if hidden > 0 else "")


def _columns(table: Sequence[tuple[str, ...]], indent: str = "") -> str:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    )
    return "\n".join(indent + line for line in lines)


def _figure(value: int | None, unit: str) -> str:
    return "-" if value is None else f"{value}{unit}"


def _mebibytes(value: int | None) -> str:
    return "-" if value is None else f"{value >> 20} MiB"
