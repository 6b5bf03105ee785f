# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Code run in a process of its own: for imports, forks, environments and anything that must happen first."""

from __future__ import annotations

import atexit
import functools
import os
import subprocess
import sys
import textwrap

from tests.harness.forkserver import ForkServer, read_early


def _environment(changes: dict[str, str | None]) -> dict[str, str]:
    """This process's, changed; a variable set to None is removed."""
    variables = {**os.environ, **changes}
    return {name: value for name, value in variables.items() if value is not None}


def run_python(
    *arguments: str, timeout: float = 300, **environment: str | None
) -> subprocess.CompletedProcess:
    """Run a new interpreter with arguments. A variable set to None is removed from the environment."""
    return subprocess.run(
        [sys.executable, *arguments],
        env=_environment(environment),
        capture_output=True,
        text=True,
        timeout=timeout,
    )


@functools.cache
def _server() -> tuple[ForkServer, dict[str, str]]:
    """Started at the first use, with the environment that it has."""
    server = ForkServer(path=(os.getcwd(),))
    atexit.register(server.close)
    return server, dict(os.environ)


def run_code(code: str, fresh: bool = False, **environment: str | None) -> str:
    """Standard output of code that must succeed.

    It runs in a fork of a process that has imported torch, whose `import torch` counts as the first: the
    autoload runs there. `fresh` asks for an interpreter that has imported nothing; variables that are read
    while torch is imported get one as well.
    """
    code = textwrap.dedent(code)
    wanted = _environment(environment)
    if not fresh:
        server, started_with = _server()
        changed = {name for name in {*wanted, *started_with} if wanted.get(name) != started_with.get(name)}
        fresh = any(map(read_early, changed))
    done = (
        run_python("-c", code, **environment)
        if fresh
        else server.run(f"hide_torch()\n{code}", wanted, cwd=os.getcwd())
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
