# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Measurements in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

# Triton's backend for musa, with which Inductor compiles.
TRITON = Path(__file__).parents[2] / "tests" / "gpu" / "triton_backend"
STACKS_BEFORE_S = 20  # time before its end at which a slow process prints its threads' stacks


def alone(device: str, *arguments: str, limit: float) -> dict:
    """Runs `python -m benchmarks.gpu --alone DEVICE`, which registers musa only if DEVICE is musa."""
    return output("--alone", device, *arguments, musa=device == "musa", limit=limit)


def output(*arguments: str, musa: bool, limit: float) -> dict:
    """Returns what `python -m benchmarks.gpu` prints with these arguments.

    Args:
        musa: whether the process registers musa.
        limit: seconds after which the process is ended.

    Raises:
        RuntimeError: if it failed or was ended.
    """
    env = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "1" if musa else "0"}
    if musa:
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(TRITON), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "benchmarks.gpu", *arguments]
    command += ["--stacks-after", f"{limit - STACKS_BEFORE_S:.0f}"]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired as error:
        stacks = (error.stderr or b"").decode(errors="replace").strip()[-4000:]
        raise RuntimeError(f"did not end in {limit:.0f} s\n{stacks}") from None
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])
