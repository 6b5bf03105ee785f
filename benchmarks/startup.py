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
# The last thing that `import torch` does is to load device backends. That is timed by itself, in the same
# process: the difference of two imports of a second each would drown in what else the machine does.
PROGRAM = """
import time
start = time.perf_counter()
import torch
loaded = time.perf_counter()
torch._import_device_backends()
print(loaded - start, time.perf_counter() - loaded)
"""


def import_seconds() -> tuple[float, float]:
    """Seconds for torch alone and for the backends on top of it, in a fresh process."""
    # pip compiles what it installs; packages in development are compiled at the first import, where allowed.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    command = [sys.executable, "-c", PROGRAM]
    result = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    torch_alone, backends = map(float, result.stdout.split())
    return torch_alone, backends


def measure_all(effort: Effort) -> Iterator[Row]:
    import_seconds()  # bytecode and files get cached
    times = zip(*(import_seconds() for _ in range(effort.rounds)))
    torch_alone, backends = (1e3 * statistics.median(part) for part in times)
    both = torch_alone + backends
    yield Row("start", "import torch, with and without", both, torch_alone, "ms", BAR_MS, by="difference")
