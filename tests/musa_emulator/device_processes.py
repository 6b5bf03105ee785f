# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Processes that use emulated devices while libmtml reads them from another process."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator

from tests.musa_emulator import sdk

_numbers = itertools.count()


def machine(**variables: str) -> dict[str, str]:
    """The environment of an emulated machine that no other test uses: three devices of 256 MiB."""
    return sdk.clean_environment(
        MUSA_EMULATOR_MACHINE=f"test-{os.getpid()}-{next(_numbers)}",
        MUSA_EMULATOR_DEVICES="3",
        LD_LIBRARY_PATH=str(sdk.HOME / "lib"),
        **variables,
    )


@contextlib.contextmanager
def running(code: str, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A process that has run `code`, after sdk.PREAMBLE, and stays until its input is closed.

    `code` may define `forever()`, which then runs until the process is killed.
    """
    end = "\nprint('ready', flush=True)\nglobals().get('forever', sys.stdin.read)()\n"
    with started(textwrap.dedent(code) + end, environment) as (process, line):
        assert line == "ready\n"
        yield process


@contextlib.contextmanager
def started(code: str, environment: dict[str, str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that runs `code` after sdk.PREAMBLE until it is killed at the end, and its first line."""
    with subprocess.Popen(
        [sys.executable, "-c", sdk.PREAMBLE + code],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline()
        finally:
            process.kill()


def on_device(device: int, mebibytes: int) -> str:
    """Code that allocates memory on a device."""
    return f"ok(rt.musaSetDevice({device}))\np = malloc({mebibytes} << 20)\n"
