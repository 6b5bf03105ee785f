# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""C++ tests: a CMake project, configured and built."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path

from tests.musa_emulator.sdk import ROOT, tool


def build(source: Path, folder: str, *targets: str, **variables: object) -> Path:
    """Builds all or some targets, and returns the build folder below build/. The assertion about a failed
    step has its output."""
    place = ROOT / "build" / folder
    configure = [tool("cmake"), "-S", str(source), "-B", str(place), "-G", "Ninja"]
    configure += [f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}"]
    configure += [f"-D{name}={value}" for name, value in variables.items()]
    chosen = ["--target", *targets] if targets else []
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # suites of other processes build the emulator in the same folder
        for command in (configure, [tool("cmake"), "--build", str(place), *chosen]):
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-8000:]}\n{done.stderr[-4000:]}"
    return place
