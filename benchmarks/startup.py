# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""What the installed packages add to ``import torch``."""

import json
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


# Each pack's import hook, called by itself after an import at which it was disabled. In processor time: what
# a hook adds is less than what two imports differ by.
HOOKS_BAR_MS = 1.0
HOOKS = """
import json, os, time
from importlib.metadata import entry_points
names = sorted(entry.name for entry in entry_points(group="torch_musa.import.v2"))
os.environ["TORCH_MUSA_DISABLE_PACKS"] = ",".join(names)
import torch
from torch_musa.entry_points import IMPORT_HOOKS, select
found = {}
for entry in select(IMPORT_HOOKS):
    start = time.thread_time()
    entry.load()(torch.musa)
    found[entry.name] = time.thread_time() - start
print(json.dumps(found))
"""


def hook_seconds() -> dict[str, float]:
    """Seconds of the processor for the import hook of each pack, in a fresh process."""
    result = subprocess.run([sys.executable, "-c", HOOKS], check=True, capture_output=True, text=True)
    return json.loads(result.stdout)


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
    samples = [hook_seconds() for _ in range(effort.rounds)]
    for name in sorted(samples[0]):
        added = 1e3 * statistics.median(sample[name] for sample in samples)
        title = f"import torch, with and without the hook of {name}"
        yield Row("start", title, torch_alone + added, torch_alone, "ms", HOOKS_BAR_MS, by="difference")
