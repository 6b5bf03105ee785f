# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Runs long commands with one status line on the terminal and the full output in a log."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from . import WorkspaceError

HEARTBEAT_S = 30
TAIL_LINES = 40


def last_line(log: Path) -> str:
    """Returns the last non-empty line of a log that is still being written."""
    with log.open("rb") as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - 2000))
        lines = stream.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def tail(log: Path, lines: int = TAIL_LINES) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


class LiveLine:
    """On a terminal a line that is redrawn; otherwise lines at the start, every 30 s and at the end.

    If several are active on one terminal, the oldest is drawn.
    """

    _live: ClassVar["weakref.WeakSet[LiveLine]"] = weakref.WeakSet()

    def __init__(self, title: str, stream=None):
        self.title = title
        self.stream = stream or sys.stdout
        self.is_terminal = self.stream.isatty()
        self.start = time.monotonic()
        self.beats = 0
        self._live.add(self)
        if not self.is_terminal:
            print(f"{title} ...", file=self.stream, flush=True)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.start

    def clear(self) -> None:
        """Clears the line before other output."""
        if self.is_terminal:
            print("\r\x1b[2K", end="", file=self.stream, flush=True)

    def update(self, detail: str) -> None:
        text = f"{self.title} {self.elapsed:4.0f} s  {detail}"
        if self.is_terminal:
            rivals = [line for line in self._live if line.stream is self.stream]
            if min(rivals, key=lambda line: line.start, default=self) is not self:
                return
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\x1b[2K{text[:width]}", end="", file=self.stream, flush=True)
        elif self.elapsed >= (self.beats + 1) * HEARTBEAT_S:
            self.beats += 1
            print(text[:160], file=self.stream, flush=True)

    def finish(self, outcome: str) -> None:
        self._live.discard(self)
        self.clear()
        print(f"{self.title} {outcome} ({self.elapsed:.1f} s)", file=self.stream, flush=True)


@contextlib.contextmanager
def process_group(command: Sequence[str], **popen) -> Iterator[subprocess.Popen]:
    """A process whose descendants are ended if the body exits early; pip would leave compilers running.

    If the process shares a terminal's input, it stays in the terminal's group instead: a debugger needs
    this to read input, and Ctrl-C reaches all processes anyway.
    """
    apart = "stdin" in popen or not sys.stdin.isatty()
    process = subprocess.Popen(command, start_new_session=apart, **popen)
    try:
        yield process
    except BaseException:
        # Interrupted first, so that pytest prints its results and pip removes its temporary files.
        for number, grace in ((signal.SIGINT, 5), (signal.SIGKILL, None)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number) if apart else process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(grace)
        raise


def run_logged(
    title: str,
    command: list[str],
    log: Path,
    env: dict[str, str] | None = None,
    cwd=None,
    stop: threading.Event | None = None,
) -> float:
    """Runs ``command`` with its output in ``log``; returns the seconds it took.

    Raises WorkspaceError with the end of the log and its path if the command fails. Ends the command when
    ``stop`` is set.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    live = LiveLine(title)
    with log.open("w") as output:
        output.write(f"$ {' '.join(map(str, command))}\n")
        output.flush()
        with process_group(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=env, cwd=cwd
        ) as process:
            while True:
                try:
                    status = process.wait(timeout=0.25)
                    break
                except subprocess.TimeoutExpired:
                    if stop is not None and stop.is_set():
                        live.finish("stopped")
                        raise WorkspaceError(f"{title} was stopped, because another step failed") from None
                    live.update(last_line(log))
    if status != 0:
        live.finish("failed")
        raise WorkspaceError(
            f"{tail(log)}\n\n{title} failed with exit status {status}. The end of its output is above;\n"
            f"the whole is in {log}"
        )
    live.finish("done")
    return live.elapsed
