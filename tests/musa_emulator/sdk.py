# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The path of the emulated SDK, and functions that call it in a separate process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import musa_emulator

ROOT = Path(__file__).resolve().parents[2]
HOME = musa_emulator.home()

# The start of every snippet. ctypes calls release the GIL and check nothing, like a C caller.
PREAMBLE = f"""
import ctypes, os, sys
rt = ctypes.CDLL({str(HOME / "lib" / "libmusart.so")!r})
rt.musaGetErrorName.restype = ctypes.c_char_p
rt.musaEmulatorConfigurationError.restype = ctypes.c_char_p
rt.musaEmulatorMode.restype = ctypes.c_char_p
HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def name(status):
    return rt.musaGetErrorName(status).decode()
def ok(status):
    assert status == 0, name(status)
def malloc(size):
    pointer = ctypes.c_void_p()
    ok(rt.musaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)))
    return pointer
def stream():
    handle = ctypes.c_void_p()
    ok(rt.musaStreamCreateWithFlags(ctypes.byref(handle), 1))
    return handle
def count():
    n = ctypes.c_int(-1)
    return name(rt.musaGetDeviceCount(ctypes.byref(n))), n.value
"""


def tool(name: str) -> str:
    """Returns the path of a build tool in this environment, otherwise on the system."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which(name, path=path)
    assert found, f"{name} was not found. Fix: python3 tools/dev.py setup"
    return found


def clean_environment(**variables: str) -> dict[str, str]:
    """Returns the environment without this test session's emulator settings, plus `variables`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MUSA_")}
    return {**kept, "MUSA_EMULATOR_MEMORY_LIMIT": "256M", **variables}


def run(code: str, timeout: float = 60, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs Python code after PREAMBLE; `variables` are added to a clean environment."""
    return subprocess.run(
        [sys.executable, "-c", PREAMBLE + textwrap.dedent(code)],
        env=clean_environment(**variables),
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def output(code: str, **variables: str) -> str:
    """Returns the standard output of code, which must succeed."""
    done = run(code, **variables)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
