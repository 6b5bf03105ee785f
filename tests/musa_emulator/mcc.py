# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Compiles each program in kernels/ once per test session."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from tests.musa_emulator import sdk

MCC = sdk.HOME / "bin" / "mcc"
KERNELS = Path(__file__).parent / "kernels"
FOLDER = sdk.ROOT / "build" / "emulator-tests" / "kernels"


def mcc(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(MCC), *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=300, check=False
    )


@cache
def program(name: str, *options: str) -> Path:
    """Returns the program of kernels/<name>.mu, built by mcc with the options."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    built = FOLDER / "-".join([name, *(option.strip("-").replace("=", "-") for option in options)])
    done = mcc("-O1", "-g", "-std=c++17", *options, KERNELS / f"{name}.mu", "-o", built)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return built


def run(
    built: Path, *arguments: str, timeout: float = 120, **settings: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(built), *arguments],
        env=sdk.clean_environment(**settings),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
