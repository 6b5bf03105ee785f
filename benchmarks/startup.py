# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The time that installed packages add to ``import torch``."""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator

from .measure import Effort, Row

BAR_MS = 30.0
# `import torch` loads device backends last. That step is timed separately in the same process,
# because the difference of two imports of a second each would be smaller than the noise.
PROGRAM = """
import time
start = time.perf_counter()
import torch
loaded = time.perf_counter()
torch._import_device_backends()
print(loaded - start, time.perf_counter() - loaded)
"""


# Calls each pack's import hook separately, after an import with that hook disabled. Uses processor
# time, because a hook takes less than the difference between two imports.
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
    """Returns the processor seconds of each pack's import hook, in a fresh process."""
    result = subprocess.run([sys.executable, "-c", HOOKS], check=True, capture_output=True, text=True)
    return json.loads(result.stdout)


def import_seconds() -> tuple[float, float]:
    """Returns the seconds for torch alone and for loading the backends, in a fresh process."""
    # pip compiles packages during installation; development packages are compiled on first import,
    # if allowed.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    command = [sys.executable, "-c", PROGRAM]
    result = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    torch_alone, backends = map(float, result.stdout.split())
    return torch_alone, backends


def measure_all(effort: Effort) -> Iterator[Row]:
    import_seconds()  # caches bytecode and files
    times = zip(*(import_seconds() for _ in range(effort.rounds)))
    torch_alone, backends = (1e3 * statistics.median(part) for part in times)
    both = torch_alone + backends
    yield Row("start", "import torch, with and without", both, torch_alone, "ms", BAR_MS, by="difference")
    samples = [hook_seconds() for _ in range(effort.rounds)]
    for name in sorted(samples[0]):
        added = 1e3 * statistics.median(sample[name] for sample in samples)
        title = f"import torch, with and without the hook of {name}"
        yield Row("start", title, torch_alone + added, torch_alone, "ms", HOOKS_BAR_MS, by="difference")
