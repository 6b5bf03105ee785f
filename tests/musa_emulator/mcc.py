# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Compiles the programs in kernels/."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from tests.harness import builds
from tests.musa_emulator import sdk

MCC = sdk.HOME / "bin" / "mcc"
KERNELS = Path(__file__).parent / "kernels"


def mcc(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(MCC), *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=300, check=False
    )


@cache
def program(name: str, *options: str) -> Path:
    """Returns the program of kernels/<name>.mu, built by mcc with the options."""
    arguments = ["-O1", "-g", "-std=c++17", *options]

    def build(path: Path) -> None:
        done = mcc(*arguments, KERNELS / f"{name}.mu", "-o", path)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"

    file = "-".join([name, *(option.strip("-").replace("=", "-") for option in options)])
    key = builds.digest([KERNELS], builds.sdk_digest(), *arguments)
    return builds.shared(f"emulator_kernels/{file}", key, build)


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
