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
    program = (
        sdk.PREAMBLE
        + textwrap.dedent(code)
        + "\nprint('ready', flush=True)\n"
        + "globals().get('forever', sys.stdin.read)()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def on_device(device: int, mebibytes: int) -> str:
    """Code that allocates memory on a device."""
    return f"ok(rt.musaSetDevice({device}))\np = malloc({mebibytes} << 20)\n"
