# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The command: the sections of the file, the processes that make some of them, and the closing text.

Sections that use the device come from processes with a time limit: a device that hangs, or a library that
ends the process, costs the report one section.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

from musa_runtime.errors import MusaError

from . import machine
from .masking import Mask

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from typing import IO, Any

DEFAULT_FILE = "torch_musa_report.txt"
SECONDS = 22  # from the start of the command; writing the file and the end of Python come after it
_TITLE = "torch_musa report"
_LOG_LINES = 200
_OUTPUT_BYTES = 200_000  # of a process, from its end
_CUT = "(did not end within the time limit, and was ended)"

# Sections that this process makes.
_FACTS: dict[str, Callable[[], list[str]]] = {
    "installation": machine.installation,
    "environment variables": machine.environment_variables,
    "MUSA SDK": machine.musa_sdk,
    "driver and container": machine.driver_and_container,
}
_DEVICES = """
from torch_musa import management
library = management.Library()
print("driver", library.driver())
for device in library.devices():
    print({name: value for name, value in device.items() if name != "uuid"})
"""
# Prints each title first, so that a check that hangs is named.
_DOCTOR = """
from torch_musa import doctor
print(doctor.render(doctor.examine(before=lambda title: print("checking", title, flush=True))))
"""
_VERSIONS = """
from torch_musa import listings
print(listings.render_environment(listings.environment(settings=False)))
"""
# Sections that processes make, by the arguments of the interpreter.
_PROCESSES = {
    "doctor": ["-c", _DOCTOR],
    "packs": ["-m", "torch_musa", "packs"],
    "devices of the driver": ["-c", _DEVICES],
    "versions and devices": ["-c", _VERSIONS],
    # With the stacks of all threads after a crash.
    "first program": ["-X", "faulthandler", "-m", "torch_musa.report.first_program"],
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command to a command line parser."""
    parser.add_argument(
        "--output", type=Path, default=Path(DEFAULT_FILE), metavar="FILE", help=f"default: {DEFAULT_FILE}"
    )
    parser.add_argument(
        "--log",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help=f"include the last {_LOG_LINES} lines of a log of your program; may be repeated",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=SECONDS,
        metavar="N",
        help=f"end checks and the first program N seconds after the start of the command; default {SECONDS}",
    )


def run(options: argparse.Namespace) -> tuple[str, int]:
    """Writes the file. Returns the text to print and the exit status.

    Raises:
        MusaError: if the file cannot be written or is not a report, or if a log cannot be read.
    """
    _check(options.output)
    logs = {f"log {path}": _last_lines(path) for path in options.log}
    with contextlib.ExitStack() as stack:
        end = time.monotonic() + options.seconds - _age()
        # All at once, because each of them imports torch.
        started = {
            title: stack.enter_context(_Process(arguments, end)) for title, arguments in _PROCESSES.items()
        }
        parts = {title: _facts(make) for title, make in _FACTS.items()}
        parts |= {title: process.output() for title, process in started.items()}
    parts |= logs or {"log": "none: torch_musa writes no log files; --log FILE includes one of your program"}
    mask = Mask.of_this_process()
    # Twice, as the closing text has the number of replacements.
    body = mask("\n".join(f"==== {title} ====\n{text.rstrip()}\n" for title, text in parts.items()))
    closing = mask(_closing(list(parts), mask))
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    text = f"{_TITLE}, {when}\n\n{body}\n==== about this file ====\n{closing}\n"
    try:
        options.output.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise MusaError(f"{options.output} cannot be written: {error.strerror}.\n{_OTHER_FILE}") from error
    cut = [title for title, part in parts.items() if part.endswith(_CUT)]
    return f"wrote {options.output} ({len(text) / 1000:.0f} KB)\n\n{closing}{_advice(cut)}", 0


_OTHER_FILE = "Fix: python -m torch_musa report --output FILE, with a file in a folder that you can write"


def _check(output: Path) -> None:
    """Raises a MusaError if the file exists and is not an older report."""
    try:
        with output.open(encoding="utf-8", errors="replace") as file:
            if file.read(len(_TITLE)) != _TITLE:
                raise MusaError(f"{output} exists and is not a report; it was not changed.\n{_OTHER_FILE}")
    except FileNotFoundError:
        return
    except OSError as error:
        raise MusaError(f"{output} cannot be written: {error.strerror}.\n{_OTHER_FILE}") from error


def _last_lines(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return "\n".join(_end_of(file).splitlines()[-_LOG_LINES:])
    except OSError as error:
        raise MusaError(
            f"the log {path} cannot be read: {error.strerror}.\nFix: --log FILE, with an existing file"
        ) from error


def _end_of(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _OUTPUT_BYTES))
    return file.read().decode(errors="replace")


def _facts(make: Callable[[], list[str]]) -> str:
    try:
        return "\n".join(make())
    except Exception as error:  # noqa: BLE001 - the other sections must be written
        return f"this section failed: {type(error).__name__}: {error}"


def _age() -> float:
    """Returns the seconds since this process has started, 0 where the system does not report it."""
    try:
        stat = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace")
        uptime = float(Path("/proc/uptime").read_text(encoding="utf-8").split()[0])
    except OSError:
        return 0.0
    # Field 22; the name of the program, in parentheses, may contain blanks.
    return uptime - int(stat.rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")


class _Process:
    """A process of a section, in a process group of its own, so that all its children can be ended."""

    def __init__(self, arguments: list[str], end: float) -> None:
        self._end = end
        # A file, because a pipe that is not read would stop the process.
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        self._process: subprocess.Popen[Any] = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=self._file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )

    def output(self) -> str:
        """Waits for the process, at most until the time limit. Returns its output and how it ended."""
        try:
            status = self._process.wait(max(0.0, self._end - time.monotonic()))
            ended = "" if status == 0 else f"\n(exit status {status})"
            if status < 0:
                ended = f"\n(ended by {signal.Signals(-status).name})"
        except subprocess.TimeoutExpired:
            ended = f"\n{_CUT}"
        return _end_of(self._file).rstrip() + ended

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._file.close()


def _closing(titles: list[str], mask: Mask) -> str:
    replaced = ", ".join(f"{count} {kind}" for kind, count in sorted(mask.counts.items()) if count)
    return (
        f"The file has these sections: {', '.join(titles)}.\n"
        "Of the environment variables it has those of docs/guide/environment.md, and no others.\n"
        "Secrets and the names of the user, the home folder and the host are masked "
        f"({replaced or 'none was found'}).\n"
        "Read the file before you send it: names of other persons and machines are not recognized.\n"
        f"Attach it to an issue of {_repository()}, with the form\n"
        '"Run on a Moore Threads card" if the machine has one, otherwise "Bug report".\n'
        "Report a suspected vulnerability privately, as SECURITY.md describes."
    )


def _advice(cut: list[str]) -> str:
    """Returns how to complete the sections that the time limit has cut, "" if there are none."""
    if not cut:
        return ""
    return (
        f"\n\nThese sections are not complete: {', '.join(cut)}.\n"
        "Likely causes: the machine is slow or busy; the driver hangs.\n"
        f"Fix: python -m torch_musa report --seconds {10 * SECONDS}"
    )


def _repository() -> str:
    """Returns the address of the issues according to the wheel's metadata, or words for it."""
    try:
        urls = metadata.metadata("torch-musa").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        urls = []
    named = dict(url.split(", ", 1) for url in urls if ", " in url)
    return next(
        (named[name] for name in ("Issues", "Repository") if name in named), "the repository of torch_musa"
    )
