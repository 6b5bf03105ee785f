# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""An installation of musa_runtime with stub libraries, so that a test can break each of them separately.

It has the real Python files, libraries compiled from a few lines, a `_C` written in Python, and a `torch` of
three lines; a process with it starts in a fraction of a second.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import musa_runtime

SOURCES = Path(musa_runtime.__file__).parent
# Files of an installed package that are not Python code.
BUILT = shutil.ignore_patterns("*.so", "__pycache__", "lib", "include", "share")

RUNTIME = "int musa_runtime_abi(void) { return %d; }"
SUBSTITUTE = """
#include <stdio.h>
void musa_runtime_set_unavailable_reason(const char* reason) {
  printf("told: %s\\n", reason);
  fflush(stdout);
}
"""
SDK = "int musaGetDeviceCount(int* count) { *count = 2; return 0; }"

TORCH = """
__version__ = {version!r}
class _C:
    _get_privateuse1_backend_name = staticmethod(lambda: {slot!r})
"""

EXTENSION = """
from types import SimpleNamespace
calls = []
bad_fork = False
def init(): calls.append("init")
def ops_await_packs(): pass
def is_in_bad_fork(): return bad_fork
def device_count(): return 2
def device_count_error(): return None
def current_device(): return 0
def get_device_properties(index): return SimpleNamespace(is_integrated=False)
def computes_on_host(): return False
def ops_providers(): return ["demo", "host"]
def ops_declared(): return {"demo": 4, "runtime": 9}
def ops_table(): return [
    {"op": name, "provider": "host", "calls": 0, "reason": "policy", "candidates": [
        {"provider": "demo", "rank": None, "calls": 0, "conditional": False},
        {"provider": "host-copy", "rank": 1, "calls": 0, "conditional": False},
        {"provider": "host", "rank": 0, "calls": 0, "conditional": False}]}
    for name in ("aten::mm", "aten::add.Tensor", "aten::add.Scalar", "aten::relu")]
def ops_has(op): return any(row["op"] == op for row in ops_table())
def ops_explain(op): return {"op": op, "provider": "host", "reason": "policy", "candidates": []}
def ops_prefer(pattern, providers): calls.append(("prefer", pattern, providers))
def ops_reset_policy(): calls.append("reset")
def default_generator(index):
    return SimpleNamespace(manual_seed=lambda seed: calls.append(("seed", index, seed)))
"""


class StubRuntime:
    """A directory for `PYTHONPATH`, and an SDK home next to it."""

    def __init__(self, directory: Path) -> None:
        self.site = directory / "site"
        self.package = self.site / "musa_runtime"
        self.home = directory / "sdk"
        self.environment = {"MUSA_HOME": str(self.home), "TORCH_MUSA_OPS_FILE": "none"}
        shutil.copytree(SOURCES, self.package, ignore=BUILT)
        self.compile("musa_runtime/lib/libmusa_runtime.so", RUNTIME % musa_runtime.ABI)
        self.compile("musa_runtime/lib/libmusa_unavailable.so", SUBSTITUTE)
        self.compile(self.home / "lib/libmusart.so", SDK)
        self.write("musa_runtime/_C.py", EXTENSION)
        # CMake writes it, so it is not among the sources.
        self.write("musa_runtime/_torch_minor.py", f'TORCH_MINOR = "{musa_runtime.TORCH_MINOR}"\n')
        self.write_torch()

    def write(self, relative: str, text: str) -> None:
        path = self.site / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))

    def write_torch(
        self, version: str = f"{musa_runtime.TORCH_MINOR}.0", slot: str = "privateuseone"
    ) -> None:
        self.write("torch.py", TORCH.format(version=version, slot=slot))

    def compile(self, relative: str | Path, source: str) -> None:
        path = self.site / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        command = [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-x", "c", "-o", str(path), "-"]
        subprocess.run(command, input=source, text=True, check=True, capture_output=True)

    def run(self, code: str, **environment: str) -> subprocess.CompletedProcess:
        """Run code in a new interpreter that imports from this installation first."""
        variables = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("MUSA_", "TORCH_MUSA_"))
            },
            **self.environment,
            **environment,
            # -S below keeps site-packages out, and with it the finders of editable installs.
            "PYTHONPATH": str(self.site),
        }
        return subprocess.run(
            [sys.executable, "-S", "-c", textwrap.dedent(code)],
            env=variables,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def load(self, **environment: str) -> dict:
        """The report of `musa_runtime.load()`, and the output of the substitute library."""
        done = self.run(REPORT, **environment)
        assert done.returncode == 0, done.stderr
        told, _, report = done.stdout.rpartition("REPORT ")
        return {**json.loads(report), "told": told}


REPORT = """
import json
import musa_runtime
result = musa_runtime.load()
assert musa_runtime.load() is result
cause = result.error.__cause__ if result.error else None
print("REPORT " + json.dumps({
    "status": result.status,
    "error": type(result.error).__name__,
    "reason": result.reason,
    "cause": type(cause).__name__,
    "attempts": result.attempts,
    "extension": result.extension is not None,
}))
"""
