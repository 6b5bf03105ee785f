# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Code run in a process of its own: for imports, forks, environments and other code that must run first."""

from __future__ import annotations

import atexit
import functools
import os
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.harness import absent
from tests.harness.forkserver import ForkServer, read_early


def _environment(changes: dict[str, str | None]) -> dict[str, str]:
    """This process's environment with changes; a variable set to None is removed.

    Skips the running test if the changes name a provider of operators that is not installed.
    """
    absent.skip_without((changes.get("TORCH_MUSA_OPS") or "").split(","))
    variables = {**os.environ, **changes}
    return {name: value for name, value in variables.items() if value is not None}


def run_python(
    *arguments: str, timeout: float = 300, folder: Path | None = None, **environment: str | None
) -> subprocess.CompletedProcess:
    """Run a new interpreter with arguments in a folder, by default the current one. A variable set to None is
    removed from the environment."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=_environment(environment),
        capture_output=True,
        text=True,
        timeout=timeout,
    )


@functools.cache
def _server() -> tuple[ForkServer, dict[str, str]]:
    """The server, started at the first use, and its environment."""
    server = ForkServer(path=(os.getcwd(),))
    atexit.register(server.close)
    return server, dict(os.environ)


def _search_path(wanted: str | None, present: str | None) -> list[str] | None:
    """The folders that `wanted` adds to the PYTHONPATH `present`; None if it removes some."""
    folders, old = ([part for part in (text or "").split(os.pathsep) if part] for text in (wanted, present))
    return None if set(old) - set(folders) else [folder for folder in folders if folder not in old]


def run_forked(code: str, timeout: float = 300, **environment: str | None) -> subprocess.CompletedProcess:
    """Run code in a fork of a process that has imported torch. Its `import torch` runs the autoload, as the
    first import does.

    If a variable that is read while torch is imported differs, except PYTHONPATH, a new interpreter runs the
    code.
    """
    wanted = _environment(environment)
    server, started_with = _server()
    changed = {name for name in {*wanted, *started_with} if wanted.get(name) != started_with.get(name)}
    added = _search_path(wanted.get("PYTHONPATH"), started_with.get("PYTHONPATH"))
    if added is None or any(map(read_early, changed - {"PYTHONPATH"})):
        return run_python("-c", code, timeout=timeout, **environment)
    preamble = f"import sys\nsys.path[1:1] = {added!r}\ndel sys\nhide_torch()\n"
    return server.run(preamble + code, wanted, cwd=os.getcwd(), timeout=timeout)


def code_of_module(*arguments: str) -> str:
    """Code equivalent to `python -m` with these arguments."""
    return (
        f"import runpy, sys\nsys.argv = {list(arguments)!r}\n"
        f"runpy.run_module({arguments[0]!r}, run_name='__main__', alter_sys=True)\n"
    )


def run_module(
    *arguments: str, timeout: float = 300, **environment: str | None
) -> subprocess.CompletedProcess:
    """`python -m` with arguments, the first of which names a module, as `run_forked` runs code."""
    return run_forked(code_of_module(*arguments), timeout, **environment)


def run_code(code: str, fresh: bool = False, **environment: str | None) -> str:
    """Standard output of code that must succeed, as `run_forked` runs it.

    With `fresh`, a new interpreter runs the code.
    """
    code = textwrap.dedent(code)
    done = run_python("-c", code, **environment) if fresh else run_forked(code, **environment)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
