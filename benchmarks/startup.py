# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""What the installed packages add to ``import torch``."""

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator

from .measure import Effort, Row

BAR_MS = 30.0
PROGRAM = "import time; start = time.perf_counter(); import torch; print(time.perf_counter() - start)"


def import_seconds(env: dict[str, str]) -> float:
    command = [sys.executable, "-c", PROGRAM]
    result = subprocess.run(command, env={**os.environ, **env}, check=True, capture_output=True, text=True)
    return float(result.stdout)


def measure_all(effort: Effort) -> Iterator[Row]:
    """Fresh processes in turn, with and without device backends loading themselves."""
    sides = ({"TORCH_DEVICE_BACKEND_AUTOLOAD": "1"}, {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
    for env in sides:  # bytecode and files get cached
        import_seconds(env)
    times = [[import_seconds(env) for env in sides] for _ in range(effort.rounds)]
    value, baseline = (1e3 * statistics.median(side) for side in zip(*times))
    yield Row("start", "import torch, with and without", value, baseline, "ms", BAR_MS, by="difference")
