# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Code run in an interpreter of its own: for imports, forks, environments and anything that must happen
first."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap


def run_python(
    *arguments: str, timeout: float = 300, **environment: str | None
) -> subprocess.CompletedProcess:
    """Run the interpreter with arguments. A variable set to None is removed from the environment."""
    variables = dict(os.environ)
    for name, value in environment.items():
        if value is None:
            variables.pop(name, None)
        else:
            variables[name] = value
    return subprocess.run(
        [sys.executable, *arguments], env=variables, capture_output=True, text=True, timeout=timeout
    )


def run_code(code: str, **environment: str | None) -> str:
    """Standard output of code that must succeed."""
    done = run_python("-c", textwrap.dedent(code), **environment)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
